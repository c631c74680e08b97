"""How the logs were opened: to say in a command, and in Python, what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

_FLAGS: Final = {"format": "--log-format"}  # of the keywords of jitdb.open() that are called otherwise in a shell

_SAID: Final[dict[Any, str]] = {("indexes", "memory"): "none"}  # and values


class Opening(NamedTuple):
    """The files, folders and patterns; and the keywords of jitdb.open() that differ from the default."""

    places: tuple[str, ...]
    settings: dict[str, Any]
    is_many: bool

    def command(self, where: str, since: str | None, until: str | None) -> str:
        """The line of a shell that shows these records, the newest first.

        >>> print(Opening(("my log",), {"time_unit": "s"}, False).command('at == "x"', None, "2026-11-01T00:00:00Z"))
        jitdb query --time-unit s 'my log' 'at == "x"' --until 2026-11-01T00:00:00Z --descending
        """
        words = ["jitdb", "query"]
        for name, value in self.settings.items():
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            for each in [value] if isinstance(value, (str, int)) else value:
                words += [flag] if each is True else [flag, _SAID.get((name, each), str(each))]
        words += [f"./{place}" if place.startswith("-") and place != "-" else place for place in self.places]
        words += [where] if where else []
        for flag, time in (("--since", since), ("--until", until)):
            words += [] if time is None else [flag, time]
        return shlex.join([*words, "--descending"])

    def python(self, where: str, since: str | None, until: str | None) -> str:
        """The lines of Python that ask for these records."""
        opened, places = ("open_many", list(self.places)) if self.is_many else ("open", self.places[0])
        said = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        query = f"db.query({where!r})" if where else "db.query()"
        query += "".join(
            f".{name}({time!r})" for name, time in (("since", since), ("until", until)) if time is not None
        )
        return (
            f"import jitdb\n\ndb = jitdb.{opened}({places!r}{said})\n"
            f"found = {query}.descending()\nfound.count(), found.page(50)\n"
        )

    def title(self) -> str:
        """What the page is called."""
        first = self.places[0].rstrip("/").rpartition("/")[2] or self.places[0]
        more = len(self.places) - 1
        return f"{first} and {more} more" if more else first


def opening_of(places: Sequence[str], settings: dict[str, Any], is_many: bool) -> Opening:
    """That of these places. `settings` that are empty, or the defaults, are left out."""
    return Opening(tuple(places), {name: value for name, value in settings.items() if value}, is_many)
