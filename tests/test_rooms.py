"""The house is as ARCHITECTURE.md draws it: every folder stands there, and imports only run down."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from long_tests import names

ROOT = Path(__file__).parents[1]
DRAWN = re.search(r"```\njitdb/\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.S)


def rooms() -> list[str]:
    """The folders of the drawing, from the top down, as `engine` and `engine/face`."""
    assert DRAWN is not None
    found, above = [], []
    for spaces, name in re.findall(r"^((?:  )+)(\w+)/ ", DRAWN[1], re.M):
        above = [*above[: len(spaces) // 2 - 1], name]
        found.append("/".join(above))
    return found


ROOMS = rooms()


def room_of(module: str) -> str:
    """The room that a module is in: the deepest one that is drawn; empty where it is in none."""
    parts = module.split(".")[1:]
    return next((room for end in range(len(parts), 0, -1) if (room := "/".join(parts[:end])) in ROOMS), "")


@cache
def imports() -> dict[str, set[str]]:
    """Of each module those that it imports, wherever in it, for types too."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "jitdb").rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                named |= {f"{node.module}.{each.name}" for each in node.names} | {node.module}
            elif isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
        found[module] = (named & set(files)) - {module}
    return found


def test_every_folder_is_drawn() -> None:
    for path in (ROOT / "jitdb").rglob("*.py"):
        folder = path.parent.relative_to(ROOT / "jitdb").as_posix()
        assert folder == "." or folder in ROOMS or folder.rpartition("/")[0] == "log/codecs", folder
    for room in ROOMS:
        assert list((ROOT / "jitdb" / room).glob("*.py")), room


def test_imports_only_run_down() -> None:
    """From floor to floor, and between the rooms of one; a room's own files may be needed by the rooms in it."""
    wrong = []
    for module, wanted in imports().items():
        here = room_of(module)
        for other in sorted(wanted):
            there = room_of(other)
            if other == "jitdb" and here.partition("/")[0] not in ("cli", "notebook", "testing"):
                wrong.append(f"{module} imports the package itself, which is above all floors")
            if here and there and not f"{here}/".startswith(f"{there}/") and ROOMS.index(there) < ROOMS.index(here):
                wrong.append(f"{module} ({here}) imports {other} ({there}), which is above it")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Late imports and those of types count, too; packages, which give out names of what is in them, do not."""
    reached = {module: reachable(module) for module in imports()}
    in_circles = [module for module in reached if module in reached[module]]
    circles = {frozenset(other for other in reached[each] if each in reached[other]) for each in in_circles}
    assert sorted(map(sorted, circles)) == []


def reachable(start: str) -> set[str]:
    """The modules that are imported from this one, by others in between too; itself only in a circle."""
    found: set[str] = set()
    ahead = list(imports()[start])
    while ahead:
        module = ahead.pop()
        if module not in found and not (ROOT / module.replace(".", "/")).is_dir():
            found.add(module)
            ahead += imports()[module]
    return found


def test_every_file_that_is_named_is_there() -> None:
    there = {f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("*.py")}
    for folder in ("jitdb", "tests", "docs", "benchmarks", "fuzz"):
        there |= {f"/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / folder).rglob("*.*")}
    pages = "".join((ROOT / page).read_text() for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"))
    named = re.findall(r"[`*]([\w./-]+\.(?:py|md))[`*]", pages)
    assert len(named) > 80
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in there)] == []


def test_the_tests_that_are_listed_as_long_are_there() -> None:
    assert len(names()) > 100
    for name in names():
        path, first = name.split("::")[:2]  # a class may have its tests from another one
        made = rf"^(async )?(def|class) {first}\b|^(Test.*)?\b{first}\b.* = "
        assert re.search(made, (ROOT / path).read_text(), re.M), name
