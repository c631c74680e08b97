"""`python -m jitdb`: the command line."""

import sys

from jitdb.cli import main

if __name__ == "__main__":
    sys.exit(main())
