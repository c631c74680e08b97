"""File names of indexes: inside their folder whatever the field is called, short, and never two specs on one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitdb import JITDB, Log
from jitdb.indexes.spec import OFFSETS, Form, IndexSpec, deleted_spec
from jitdb.operators import absent, equal

FORMS: tuple[Form, ...] = get_args(Form)
ODD = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/",
    "a/b",
    "a\\b",
    "a\0b",
    "x" * 300,
    "ключ",
    "💥" * 100,
    "CON",
    "a b",
    "-",
    "\n",
]
SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.[a-z_]+-[0-9a-f]{12}\.index")

names = st.sampled_from(ODD) | st.text(max_size=400)
paths = st.lists(names, min_size=1, max_size=5).map(tuple)
specs = st.builds(
    IndexSpec,
    form=st.sampled_from(FORMS),
    paths=st.lists(paths, max_size=2).map(tuple),
    index_type=st.none() | names,
    elements=st.booleans(),
    pluck=st.lists(names, max_size=2).map(tuple),
    prefix_offset=st.integers(-1, 100),
    name=names,
    version=st.integers(0, 5),
)


def is_safe(name: str) -> bool:
    return bool(SAFE.fullmatch(name)) and len(name.encode()) < 120 and Path(name).name == name


@given(specs)
def test_every_name_is_safe_and_short(spec: IndexSpec) -> None:
    assert is_safe(spec.file_name())
    assert spec.file_name() == spec._replace().file_name()


@given(specs, specs)
def test_other_specs_have_other_names_and_heads(left: IndexSpec, right: IndexSpec) -> None:
    assert (left.file_name() == right.file_name()) == (left == right)
    assert (left.descriptor() == right.descriptor()) == (left == right)


def test_specs_that_look_alike() -> None:
    alike = [
        IndexSpec("auto", (("a.b",),)),
        IndexSpec("auto", (("a", "b"),)),
        IndexSpec("auto", (("a",), ("b",))),
        IndexSpec("auto", (("a", "b"),), pluck=("c",)),
        IndexSpec("auto", (("a", "b", "c"),)),
        IndexSpec("auto", (("a", "b"),), elements=True),
        IndexSpec("auto", (("A", "b"),)),
        IndexSpec("auto", (), index_type="a.b"),
        IndexSpec("bitmap", (("a", "b"),)),
        IndexSpec("prefix", (("a", "b"),)),
        IndexSpec("prefix", (("a", "b"),), prefix_offset=0),
        IndexSpec("prefix", (("a", "b"),), prefix_offset=1),
        IndexSpec("prefix_map", (("a", "b"),), prefix_offset=0),
        IndexSpec("predicate", (("a", "b"),), name="x"),
        IndexSpec("predicate", (("a", "b"),), name="x", version=1),
        IndexSpec("predicate", (("a", "b", "x"),), name=""),
        IndexSpec("text", (("a", "b"),), name='contains "x"'),
        IndexSpec("text", (("a", "b"),), name='icontains "x"'),
        IndexSpec("column", (("a", "b"),)),
        IndexSpec("column", (("a",), ("b",))),
        IndexSpec("column", (("b",), ("a",))),
        OFFSETS,
        deleted_spec(b""),
        deleted_spec(b"\1"),
    ]
    assert len({spec.file_name().lower() for spec in alike}) == len(alike)


def test_a_name_says_what_is_inside() -> None:
    assert IndexSpec("auto", (("value", "content", "type"),)).file_name().startswith("value_content_type.auto-")
    assert OFFSETS.file_name().startswith("offsets.offsets-")


@pytest.mark.parametrize("field", ODD, ids=ascii)
def test_fields_of_any_name(field: str, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "indexes"
    with Log(tmp_path / "x.log", codec="msgpack") as log:
        log.append_many([{field: "here"}, {field: "there"}, {"other": 1}])
        log.flush()
        for _ in range(2):
            db = JITDB(log, folder)
            assert db.count(equal((field,), "here")) == 1
            assert db.count(absent((field,))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "x.log", "x.log.jitdb"]
    found = [path.name for path in folder.iterdir() if path.name != "lock"]
    assert len(found) == 3
    assert all(map(is_safe, found))
