"""Columns and filters of a query, for the logs that it reads: push_down(frame), and a warning where they were not.

Spark tells a source in Python no columns, and keeps one reader for each load() whatever is filtered. So here, in the
program, a frame's plan is read as Spark has optimized it: of each log it says which columns are used, and which
conditions stand right above it. Then the plan as it was written gets, in the place of each such table, a table of that
log anew, with these columns and with the conditions as a question; columns that nothing uses are null. It is given back
to Spark as a frame like any other, and Spark asks its conditions again.

Right, because the optimized plan gives the same rows as the written one, whatever the log holds, and can see neither
the rows that its conditions drop nor the columns that it does not name. What is in doubt is read whole: a plan with
cached data in it, and a log that a subquery reads, too.
"""

from __future__ import annotations

import atexit
import json
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import LongType, StructField, StructType

from jitdb.errors import QueryError
from jitdb.log.objects.urls import is_url
from jitdb.logset.member import find_members
from jitdb.operators import and_, or_
from jitdb.operators.nodes.operation import Everything, Operation
from jitdb.operators.text.json import to_json
from jitdb.spark_ext.columns import ColumnSource
from jitdb.spark_ext.conditions import fields_of, node_of, optimized, translated_parts
from jitdb.spark_ext.errors import PushDownWarning
from jitdb.spark_ext.options import FORMAT, ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALL: Final = Everything()
_TABLE: Final = "DataSourceV2Relation"  # of a plan as it was written
_SCANNED: Final = "DataSourceV2ScanRelation"  # of an optimized one
_CACHED: Final = "InMemoryRelation"
_NAMES: Final = ("Project", "Aggregate")  # parts of a plan that name all that they use of what is below them
_FEW: Final = 2  # of so many columns one is few
SLOW: Final = 1.0  # seconds of a query: below, nothing is told
LARGE: Final = 64 << 20  # bytes of logs, too
_LEAST: Final = 4  # columns that are read in vain
_REMEDY: Final = (
    "push_down(frame) (jitdb.spark_ext) before the action reads only what it needs; or name columns= and where= when "
    "the log is read"
)


def push_down(frame: DataFrame) -> DataFrame:
    """The same rows, for which logs are read as with `columns` and `where`: only the columns that the frame uses, and,
    by the indexes, the records that its filters may keep.

        push_down(spark.sql("SELECT service, count(*) FROM logs WHERE status >= 500 GROUP BY service")).show()

    For the last frame, before an action. Logs are opened anew, as they are now. Raises QueryError over Spark Connect.
    """
    if not hasattr(frame, "_jdf"):
        raise QueryError(
            "a frame of Spark Connect has no plan that can be read here",
            remedy="name columns= and where= when the log is read",
        )
    spark = frame.sparkSession
    written = frame._jdf.queryExecution().analyzed()
    if not any(_is_of_log(leaf, _TABLE) for leaf in _leaves(written)):
        return frame
    uses = _uses(optimized(frame))
    if uses is None:
        return frame
    inner = [leaf for plan in _within(written.subqueriesAll()) for leaf in _leaves(plan) if _is_of_log(leaf, _TABLE)]
    changed = _Rewriting(spark, [use for use in uses if not any(map(use.is_of, inner))]).of(written)
    if changed is written:
        return frame
    java = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, changed)
    return type(frame)(java, spark)


# --- reading a plan --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Use:
    """What a plan needs of one table of a log, wherever it reads it."""

    relation: Any  # Java's, one of those that came of one load()
    columns: set[int] = field(default_factory=set)  # by their places
    where: Operation | None = None  # finds all rows that the plan can see

    def is_of(self, relation: Any) -> bool:
        """Whether this relation came of the same load()."""
        return bool(self.relation.table().equals(relation.table()))  # no other object is

    def see(self, where: Operation) -> None:
        """The plan can see what this finds, too."""
        if self.where is None or where == _ALL:
            self.where = where
        elif self.where not in (_ALL, where):
            self.where = or_(self.where, where)

    @property
    def schema(self) -> StructType:
        """Of all its columns."""
        return StructType.fromJson(json.loads(self.relation.schema().json()))

    @property
    def texts(self) -> dict[str, str]:
        """The options that it was loaded with."""
        return dict(self.relation.options().asCaseSensitiveMap())

    @property
    def options(self) -> ReadOptions:
        """What they mean."""
        return ReadOptions.of(self.texts)


def _uses(plan: Any) -> list[Use] | None:
    """What an optimized plan needs of each log; None: it has cached data in it, and so does not tell."""
    found: list[Use] = []
    for part in (plan, *_within(plan.subqueriesAll())):
        if any(_kind(leaf) == _CACHED for leaf in _leaves(part)):
            return None
        _look(part, None, [], found)
    return found


def _look(plan: Any, above: Any, filters: list[Any], found: list[Use]) -> None:
    """above: what stands over the filters that stand right over this part of a plan; None: nothing"""
    if _is_of_log(plan, _SCANNED):
        _note(plan, above, filters, found)
    elif _kind(plan) == "Filter":
        _look(plan.child(), above, [*filters, plan.condition()], found)
    else:
        for child in _within(plan.children()):
            _look(child, plan, [], found)


def _note(scan: Any, above: Any, filters: Sequence[Any], found: list[Use]) -> None:
    """That a table is read here."""
    use = next((each for each in found if each.is_of(scan.relation())), None)
    if use is None:
        use = Use(scan.relation())
        found.append(use)
    places = {each.exprId().id(): place for place, each in enumerate(_within(scan.output()))}
    if above is not None and _kind(above) in _NAMES:
        referred = [above.references(), *(condition.references() for condition in filters)]
        used = {each.exprId().id() for some in referred for each in _within(some.toSeq())}
        use.columns |= {place for number, place in places.items() if number in used}
    else:
        use.columns |= set(places.values())
    fields = fields_of(use.schema, use.options.columns)
    parts = [part for condition in filters for part in translated_parts(node_of(condition), fields)]
    where = and_(*parts) if parts else _ALL
    use.where = (
        where if use.where in (None, where) else or_(use.where, where) if _ALL not in (use.where, where) else _ALL
    )


def _within(sequence: Any) -> Iterator[Any]:
    """The elements of Scala's."""
    return (sequence.apply(number) for number in range(sequence.size()))


def _leaves(plan: Any) -> Iterator[Any]:
    return _within(plan.collectLeaves())


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


def _is_of_log(plan: Any, kind: str) -> bool:
    """Whether it is a table of this source."""
    return _kind(plan) == kind and (plan.relation() if kind == _SCANNED else plan).table().name() == FORMAT


# --- writing it anew -------------------------------------------------------------------------------------------------


class _Rewriting:
    """Puts narrower tables into a plan as it was written."""

    def __init__(self, spark: Any, uses: Sequence[Use]) -> None:
        self._spark = spark
        self._uses = [(use, _loaded(spark, use)) for use in uses]

    def of(self, plan: Any) -> Any:
        """The plan itself where nothing changes."""
        if _is_of_log(plan, _TABLE):
            return next((self._narrowed(plan, *made) for use, made in self._uses if made and use.is_of(plan)), plan)
        before = list(_within(plan.children()))
        after = [self.of(child) for child in before]
        if all(old is new for old, new in zip(before, after, strict=True)):
            return plan
        return plan.withNewChildren(self._sequence(after))

    def _narrowed(self, relation: Any, narrow: Any, names: Sequence[str]) -> Any:
        narrow = narrow.newInstance()  # a plan may read one table twice, and Spark tells columns apart by numbers
        given = dict(zip(names, _within(narrow.output()), strict=True))
        columns = [self._as(each, given.get(each.name())) for each in _within(relation.output())]
        project = self._spark._jvm.org.apache.spark.sql.catalyst.plans.logical.Project
        return project(self._sequence(columns), narrow)

    def _as(self, column: Any, given: Any) -> Any:
        """What stands for a column of the wider table, known by the same number."""
        expressions = self._spark._jvm.org.apache.spark.sql.catalyst.expressions
        value = expressions.Literal(None, column.dataType()) if given is None else given
        metadata = self._spark._jvm.scala.Option.apply(column.metadata())
        number, qualifier = column.exprId(), column.qualifier()
        return expressions.Alias(value, column.name(), number, qualifier, metadata, self._sequence([]))

    def _sequence(self, items: Sequence[Any]) -> Any:
        return self._spark._jvm.PythonUtils.toSeq(list(items))


def _loaded(spark: Any, use: Use) -> tuple[Any, list[str]] | None:
    """A table with fewer columns or rows, and which of the columns it has; None where both are all."""
    schema, texts, where = use.schema, use.texts, use.where
    chosen = [each for place, each in enumerate(schema) if place in use.columns or not each.nullable]
    if len(chosen) == len(schema) and where == _ALL:
        return None
    names = [each.name for each in chosen]
    if not chosen:  # only how many there are: what costs least
        names, chosen = [""], [StructField("offset", LongType(), True, ColumnSource("offset").metadata())]
    if where is not None and where != _ALL:
        before = use.options.where
        texts = {name: text for name, text in texts.items() if name.lower() != "where"}
        texts["where"] = json.dumps(to_json(where if before is None else and_(before, where)))
    frame = spark.read.format(FORMAT).options(**texts).schema(StructType(chosen)).load()
    return frame._jdf.queryExecution().analyzed(), names


# --- telling of it ---------------------------------------------------------------------------------------------------


class _Watcher:
    """Spark tells it of each query that has ended; it warns of a slow one that read far more of a log than was used."""

    class Java:
        """What Spark takes it for."""

        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)

    def __init__(self) -> None:
        self._told: deque[Any] = deque(maxlen=64)  # relations of which a warning was given

    def onSuccess(self, name: str, execution: Any, nanoseconds: int) -> None:  # noqa: N802
        """A query gave its answer."""
        if nanoseconds < SLOW * 1e9:
            return
        for use in _uses(execution.optimizedPlan()) or ():
            what = "" if any(map(use.is_of, self._told)) else _waste(use)
            if what and _is_large(use.options.path):
                self._told.append(use.relation)
                said = f"a query of Spark's took {nanoseconds / 1e9:.1f} s, {what}"
                warnings.warn(PushDownWarning(said, path=use.options.path, remedy=_REMEDY), stacklevel=2)

    def onFailure(self, name: str, execution: Any, error: Any) -> None:  # noqa: N802
        """A query failed, of which its own error tells."""


_watcher: Final = _Watcher()
_watched: Final[set[int]] = set()  # sessions, by Java's numbers: Python has several objects for one


def watch(spark: Any) -> None:
    """Have a session of this program warn of queries that read far more than they had to."""
    from pyspark.java_gateway import ensure_callback_server_started

    number = spark._jsparkSession.hashCode()
    if number not in _watched:
        if not _watched:
            atexit.register(_last_words)
        _watched.add(number)
        ensure_callback_server_started(spark.sparkContext._gateway)
        spark._jsparkSession.listenerManager().register(_watcher)


def _last_words() -> None:
    """What Spark still has to tell is told while this process answers, else Spark logs an error."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    if context is not None:
        context._jsc.sc().listenerBus().waitUntilEmpty()


def _waste(use: Use) -> str:
    """What of a table was read in vain, in words; empty: nothing that is worth a word."""
    columns, needed, said = len(use.schema), len(use.columns), []
    if columns - needed >= _LEAST and columns >= _FEW * needed:
        said.append(f"read all {columns} columns, and used {needed}")
    if use.where not in (None, _ALL) and use.options.where is None:
        said.append(f"read all records for a filter that the log can answer: {use.where!r}")
    return ", ".join(said)


def _is_large(path: str) -> bool:
    """Whether reading all of it takes long."""
    return is_url(path) or any(total >= LARGE for total in accumulate(each.size for each in find_members(path)))
