# PYTHON_ARGCOMPLETE_OK
"""`python -m jitdb`, and the program `jitdb`: the command line.

While it is loaded, Ctrl-C ends the process at once and without a word, as nothing was begun. From then on, `main` of
the command line hears it.
"""

import sys

try:
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from jitdb.cli import main
except KeyboardInterrupt:  # it came before that
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
