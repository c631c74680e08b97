"""What stands in the pattern of a text for what varies (log/codecs/masks.py), and which texts are of a pattern."""

from typing import Final

ANY_WORD: Final = "<*>"  # of a pattern of several texts; no text has it in its own
NAMES: Final = ("<num>", "<hex>", "<uuid>", "<ip>", "<time>", "<id>", "<...>", ANY_WORD)
NUM, HEX_DIGITS, UUID, IP, TIME, ID, REST = range(7)  # their places

MOST: Final = 1024  # bytes of a pattern, after which it begins nothing more
SLACK: Final = 96  # bytes that it has at most beyond that, or beyond three times those of its text


def fits(pattern: str, own: str) -> bool:
    """Whether a text, of which this is the own pattern, is one of the other pattern: word by word it is the same, where
    a word `<*>` stands for any.

    >>> fits("user <*> in <num>ms", "user ada in <num>ms"), fits("user <*>", "user ada in")
    (True, False)
    """
    wanted, there = pattern.split(" "), own.split(" ")
    return len(wanted) == len(there) and all(want in (ANY_WORD, word) for want, word in zip(wanted, there, strict=True))
