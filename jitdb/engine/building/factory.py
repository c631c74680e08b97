"""From requirements to builders: what a scan must do to bring stale indexes up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.common.arguments import ENDS, failure
from jitdb.common.paths import Path
from jitdb.common.values import value_of_key
from jitdb.engine.building.build_lock import BuildLock, works_for
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.plan import Requirement
from jitdb.engine.progress import Bar, IndexStatus, Status
from jitdb.errors import QueryCancelled
from jitdb.indexes.kinds.bitmaps import distinct_keys
from jitdb.indexes.segment import BITMAPS, Segment
from jitdb.operators.nodes.describe import seek_name

if TYPE_CHECKING:
    from jitdb.engine.building.scan import Scan
    from jitdb.engine.building.target import BuildTarget
    from jitdb.indexes.building.builders import Builder, ValueSource
    from jitdb.indexes.files.index import Index
    from jitdb.log.source import LogSource


T = TypeVar("T")

_VERDICTS: Final = 1 << 12  # values of which it is remembered whether a predicate accepts them
_SHORT_KEY: Final = 256  # bytes of a value: of longer ones it is not


class IndexBuilderFactory:
    """Makes the targets of one scan and numbers the fields that it must locate."""

    def __init__(self) -> None:
        self._rows: dict[Path, int] = {}
        self._ended = threading.Event()  # from then on no function of the user is called
        self._calls = False  # whether any is

    @property
    def paths(self) -> list[Path]:
        """The fields to locate, by row."""
        return list(self._rows)

    def targets(
        self, needs: Sequence[Requirement], catalog: Catalog, emit: Callable[[Index, Segment], None]
    ) -> list[BuildTarget]:
        """A target for each index that is to be brought up to date."""
        from jitdb.engine.building.target import BuildTarget

        made = []
        for need in needs:
            index = catalog.get(need.spec)
            made.append(BuildTarget(index, self._builder(need, index), partial(emit, index)))
        return made

    def scan(
        self,
        log: LogSource,
        targets: Sequence[BuildTarget],
        build_lock: BuildLock,
        threads: int,
        show_progress: bool | None,
        cancel: threading.Event | None,
        damaged: Callable[[Sequence[int]], object],
        passed: Callable[[int, int], object],
    ) -> Scan:
        """Scan the log for the targets; `damaged` and `passed` as Scan takes them. Raises as Scan.run does."""
        from jitdb.engine.building.scan import Scan

        cancelled = cancel.is_set if cancel is not None else lambda: False
        scan = Scan(
            log, targets, self.paths, threads=threads, cancelled=cancelled, damaged=damaged, passed=passed,
            saves=True, calls=self._ended if self._calls else None,
            start_worker=partial(works_for, build_lock.builds()),
        )  # fmt: skip
        size = scan.stop - scan.start
        parts = [(target.index.spec.file_name(), target.begin_offset) for target in targets]
        with Bar(f"indexing {FilePath(log.path).name}", size, show_progress) as bar:

            def progress(position: int) -> None:
                indexes = [IndexStatus(name, max(0, position - begin), scan.stop - begin) for name, begin in parts]
                build_lock.status = Status("scanning", position - scan.start, size, tuple(indexes))
                bar(position - scan.start)

            progress(scan.start)
            try:
                scan.run(progress)
            finally:
                build_lock.status = build_lock.status._replace(state="idle")
        return scan

    def _builder(self, need: Requirement, index: Index) -> Builder:
        from jitdb.indexes.building.builders import (
            DeletedBuilder,
            NumbersBuilder,
            OffsetsBuilder,
            PredicateBuilder,
            PrefixBuilder,
        )
        from jitdb.indexes.building.field_builder import ValuesBuilder

        spec = need.spec
        if spec.form == "offsets":
            return OffsetsBuilder()
        if spec.form == "deleted":
            return DeletedBuilder()
        if spec.form == "column":
            return NumbersBuilder(tuple(self._row(path) for path in spec.paths))
        source = self._source(need)
        if spec.form in ("prefix", "prefix_map"):
            return PrefixBuilder(source, spec.prefix_offset, spec.form == "prefix_map")
        if spec.form == "predicate":
            accepts = need.accepts
            assert accepts is not None
            return PredicateBuilder(source, self._verdict(accepts, spec.name))
        hashed = index.kind not in (0, BITMAPS)
        keys = set() if hashed else distinct_keys(index.segments)
        return ValuesBuilder(source, limited=spec.form == "auto", hashed=hashed, keys=keys)

    def _source(self, need: Requirement) -> ValueSource:
        from jitdb.indexes.building.builders import ValueSource

        spec = need.spec
        pluck = spec.pluck if spec.elements else None
        if need.seek is not None:
            return ValueSource(-1, self._until_ended(need.seek, seek_name(need.seek)), pluck)
        return ValueSource(self._row(spec.paths[0]), None, pluck)

    def _until_ended(self, function: Callable[..., T], what: str) -> Callable[..., T]:
        """The user's function as long as the scan goes on. One that is slow must not hold up who ends it."""
        self._calls = True

        @wraps(function)
        def call(*arguments: Any) -> T:
            if self._ended.is_set():
                raise QueryCancelled("the scan was ended")
            try:
                return function(*arguments)
            except ENDS as error:
                raise failure(what, error) from error

        return call

    def _verdict(self, accepts: Callable[[Any], object], name: str) -> Callable[[bytes], bool]:
        """Whether the user's function accepts the value with a key; it is asked once for each, or not much oftener."""
        ask = self._until_ended(accepts, f"the predicate {name!r}")
        known: dict[bytes, bool] = {}

        def verdict(key: bytes) -> bool:
            found = known.get(key)
            if found is None:
                found = bool(ask(value_of_key(key)))
                if len(key) <= _SHORT_KEY:
                    if len(known) >= _VERDICTS:
                        known.clear()
                    known[key] = found
            return found

        return verdict

    def _row(self, path: Path) -> int:
        return self._rows.setdefault(path, len(self._rows))
