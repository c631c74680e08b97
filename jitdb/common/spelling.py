"""What was probably meant by a word that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The known word that is written most like this one; "" where none is.

    >>> nearest("tabel", ["ndjson", "table"])
    'table'
    """
    import difflib  # only mistakes need it

    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=likeness)), "")


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The question whether that one was meant; what to say `otherwise`.

    >>> did_you_mean("tabel", ["ndjson", "table"]), did_you_mean("x", ["table"], "there is table")
    ('did you mean table?', 'there is table')
    """
    near = nearest(word, known)
    return f"did you mean {near}?" if near else otherwise
