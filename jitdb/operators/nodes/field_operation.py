"""What operators have in common that look at one field by a FieldRef, whose index may be chosen by options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jitdb.common.paths import Path, format_path
from jitdb.common.values import value_key
from jitdb.indexes.spec import Form, IndexSpec, Requirement
from jitdb.operators.nodes.field_ref import FieldRef
from jitdb.operators.nodes.operation import Operation

if TYPE_CHECKING:
    from pyroaring import BitMap

    from jitdb.operators.nodes.answering import Answering, Core


class FieldOperation(Operation):
    """A leaf that looks at one field."""

    __slots__ = ()

    field: FieldRef

    @property
    def path(self) -> Path:
        """Of one that is found by a path."""
        assert self.field.path is not None
        return self.field.path

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.field.paths

    @property
    def seek(self) -> Callable[[bytes, int], int | None] | None:
        return self.field.seek

    @property
    def function(self) -> tuple[str, str] | None:
        return None if self.field.seek is None else ("a seek function", "use a path")

    @property
    def spec(self) -> IndexSpec:
        """The index that it is answered from."""
        return self._spec()

    def _spec(self, elements: bool = False, pluck: Path = ()) -> IndexSpec:
        options = self.field.options
        spec = IndexSpec("auto", self.field.paths, options.index_type, elements, pluck, version=options.version)
        if options.prefix is None and not options.index_all:
            return spec
        if not options.prefix:
            return spec._replace(form="bitmap")
        # A prefix index has one entry a record: where a record may own more, it is a map.
        form: Form = "prefix_map" if options.use_map or spec.is_owned else "prefix"
        return spec._replace(form=form, prefix_offset=options.prefix_offset)

    def need(self, core: Core) -> Requirement | None:
        return Requirement(self.spec, self.field.seek)

    def keywords(self) -> dict[str, Any]:
        options = self.field.options.given()
        return {"options": options} if options else {}

    def written(self) -> str:
        return self._call(format_path(self.path))

    def _described(self, *arguments: str) -> str:
        return self._call(self.field.describe(), *arguments)

    def _call(self, *arguments: str) -> str:
        options = [f"{key}={value!r}" for key, value in self.field.options.given().items()]
        return f"{self.op}({', '.join([*arguments, *options])})"

    @property
    def _is_plain(self) -> bool:
        """Whether it can be written with a sign: no options, no function."""
        return self.field.path is not None and not self.field.options.given()


class ValueOperation(FieldOperation):
    """A leaf that compares the field with a value."""

    __slots__ = ()

    value: Any

    @property
    def key(self) -> bytes:
        """The canonical bytes of the value (`value_key`), made once: it may be an array of a million numbers."""
        key: bytes = self.identity[2]
        return key

    def _is_equal(self, value: Any) -> bool:
        """A large array or map of another number of parts needs no key to be told apart."""
        both = (list, tuple, dict)
        if isinstance(value, both) and isinstance(self.value, both) and len(value) != len(self.value):
            return False
        return value_key(value) == self.key

    def answer(self, asked: Answering) -> BitMap:
        return asked.with_value(self.key)

    def prefixes(self, offset: int) -> tuple[int, int]:
        from jitdb.indexes.kinds.prefixes import key_prefix

        prefix = key_prefix(self.key, offset)
        return prefix, prefix
