"""Logs that only Hadoop can read: hdfs://, s3a://, abfs://, file:// … To Hadoop, these are files of fixed-length
records, blocks of one size, which workers read through Spark.

What the driver needs of it, the sidecar and the first and last blocks, by which it is known, are fetched into a local
folder of the same shape, a sparse file for the log; the driver works there as on any log, and the indexes that it made
are sent back. There are no locks on such a file system. So a sidecar that is there is the log's writer's alone, and
nothing is sent to a log that has become another one meanwhile; of two prebuilds at a time, the later one's files stay.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import LogCorrupt, NotALog
from jitdb.log.io import filenames, osfile
from jitdb.log.sidecar import journal, meta
from jitdb.spark_ext.errors import LogChanged, SparkError
from jitdb.spark_ext.file_range import digest_of

if TYPE_CHECKING:
    from pyspark import SparkContext

_HDFS_BLOCK: Final = 128 << 20  # bytes, as it comes: a task that reads one reads it on the machine that holds it
_SPLIT: Final = "mapreduce.input.fileinputformat.split.{}"  # Hadoop's settings of how many bytes a split has
EDGE: Final = 1 << 20  # bytes that are fetched of both ends of a log, or two blocks if they are larger
_WORDS: Final = (filenames.META, filenames.COMMIT, filenames.DELETIONS)  # what a writer says of the bytes in the log
_CHANGING: Final = filenames.NEXT_FILES  # only while a writer changes more than the log's end
_LOOKS: Final = 20  # at a log that is written at this very moment
PAUSE: Final = 0.1  # seconds between them
SMALLEST: Final = 16 << 20  # bytes: a task costs about 10 ms, and scans this much in some 100
LARGEST: Final = 256 << 20  # bytes: what a lost worker, or a slow one, costs in time; and a task's memory
_TASKS_A_CORE: Final = 4  # so that the last ones to finish keep no cluster waiting
_SIDECAR: Final = filenames.SIDECAR_SUFFIX
_INDEXES: Final = f"{_SIDECAR}/{filenames.INDEXES}"


class Stamp(NamedTuple):
    """What tells a file from what it was before."""

    size: int
    time: int  # of its last change, milliseconds since 1970


def size_for(total: int, cores: int) -> int:
    """How many bytes a range should have when so many are to be scanned."""
    return max(SMALLEST, min(LARGEST, total // (cores * _TASKS_A_CORE)))


class Remote:
    """One log on a Hadoop file system, through the driver's Java. What Hadoop complains of is a SparkError."""

    def __init__(self, context: SparkContext, uri: str) -> None:
        self.uri = uri
        self._context = context
        self._jvm: Any = context._jvm
        with self._translated("cannot be reached"):
            self._fs = self._path(uri).getFileSystem(context._jsc.hadoopConfiguration())

    def size(self) -> int:
        """Bytes of the log. Raises NotALog where there is none."""
        with self._translated("cannot be reached"):
            path = self._path(self.uri)
            if not self._fs.exists(path):
                raise NotALog("there is no such file", path=self.uri)
            return int(self._fs.getFileStatus(path).getLen())

    def time(self) -> int:
        """When the log was changed last, nanoseconds since 1970; Hadoop knows the milliseconds."""
        with self._translated("cannot be reached"):
            return int(self._fs.getFileStatus(self._path(self.uri)).getModificationTime()) * 1_000_000

    def read(self, start: int, size: int) -> bytes:
        """Some bytes of the log."""
        with self._translated("cannot be read"):
            stream = self._fs.open(self._path(self.uri))
            try:
                with self._translated("cannot be read in parts, which each task must: keep it where Hadoop can seek"):
                    stream.seek(start)
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))
            finally:
                stream.close()

    def files(self, folder: str) -> dict[str, Stamp]:
        """The files in a folder that belongs to the log, by their names; `folder` is added to its URI."""
        with self._translated("cannot be listed", folder):
            path = self._path(self.uri + folder)
            if not self._fs.exists(path):
                return {}
            found = [status for status in self._fs.listStatus(path) if status.isFile()]
            return {each.getPath().getName(): Stamp(each.getLen(), each.getModificationTime()) for each in found}

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file that belongs to the log; `name` is added to its URI."""
        with self._translated("cannot be read", name):
            self._fs.copyToLocalFile(False, self._path(self.uri + name), self._path(target.as_uri()), True)

    def check_writable(self, folder: str) -> None:
        """Whether files can be written into a folder that belongs to the log, which is made. Raises SparkError."""
        with self._translated("cannot be written", folder):
            self._fs.mkdirs(self._path(self.uri + folder))
            probe = self._path(f"{self.uri}{folder}/.{os.getpid()}.tmp")
            self._fs.create(probe, True).close()
            self._fs.delete(probe, False)

    def send(self, source: Path, name: str) -> None:
        """Put a file in the place of one that belongs to the log, at once where the file system can."""
        whole = self._path(self.uri + name)
        part = self._path(f"{whole.getParent()}/.{whole.getName()}.{os.getpid()}.tmp")
        with self._translated("cannot be written", name):
            try:
                self._fs.mkdirs(whole.getParent())
                self._fs.copyFromLocalFile(False, True, self._path(source.as_uri()), part)
                if not self._moved(part, whole):
                    self._fs.delete(whole, False)
                    if not self._fs.rename(part, whole):
                        raise SparkError(f"{self.uri}{name}: cannot be written: Hadoop renamed no file to it")
            except BaseException:
                with suppress(Exception):  # a file system that failed may fail here too: the first error is told
                    self._fs.delete(part, False)
                raise

    def _moved(self, part: Any, whole: Any) -> bool:
        """Whether a rename succeeded: some file systems refuse it where a file is, with an error or without."""
        try:
            return bool(self._fs.rename(part, whole))
        except _java_errors():
            if not self._fs.exists(whole):
                raise
            return False

    def splits(self, block_size: int, range_bytes: int | None) -> tuple[Any, list[int]]:
        """The log's blocks as an RDD of bytes, and where each partition begins: as Hadoop splits it, or as asked."""
        from pyspark.rdd import RDD
        from pyspark.serializers import NoOpSerializer

        conf = self._jvm.org.apache.hadoop.conf.Configuration(self._context._jsc.hadoopConfiguration())
        # Some file systems call 4 KiB a block, or 32 MiB; each task more costs scanning and merging.
        least = min(size_for(self.size(), self._context.defaultParallelism), _HDFS_BLOCK)
        conf.setLong(_SPLIT.format("minsize"), range_bytes or least)
        conf.setLong(_SPLIT.format("maxsize"), range_bytes or LARGEST)
        with self._translated("cannot be read"):
            blocks = self._context._jsc.sc().binaryRecords(self.uri, block_size, conf)
            starts = [int(part.serializableHadoopSplit().value().getStart()) for part in blocks.partitions()]
        return RDD(blocks.toJavaRDD(), self._context, NoOpSerializer()), starts  # as binaryRecords of Python does

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    @contextmanager
    def _translated(self, complaint: str, name: str = "") -> Iterator[None]:
        """Tell what Hadoop's Java raises as a SparkError that names the file: `name` is added to the log's URI."""
        try:
            yield
        except _java_errors() as error:
            raise SparkError(f"{self.uri}{name}: {complaint} ({_reason(error)})") from error


def _java_errors() -> tuple[type[Exception], ...]:
    """What is raised for an exception of Java, whichever it is."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return Py4JJavaError, PySparkException


def _reason(error: Any) -> str:
    """What the innermost exception of Java says: its first line, for some hold a whole stack."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if cause is None:
        return str(error)
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).partition("\n")[0].strip()


def check_whole(uri: str, size: int, block_size: int) -> None:
    """Whether the log ends with a block. Raises SparkError: Spark's way of saying so is no help."""
    if size % block_size:
        raise SparkError(
            f"{size:,} bytes are no whole number of blocks of {block_size:,}: it is being written or was cut off",
            path=uri,
        )


# --- the image -------------------------------------------------------------------------------------------------------


class Stage:
    """A log on a Hadoop file system, and its image in a local folder, at `path`."""

    def __init__(self, remote: Remote, path: Path, known: meta.Meta | None) -> None:
        """known: what the sidecar says the log is; None where it has none"""
        self.remote = remote
        self.path = path
        self._known = known
        self._sidecar = filenames.sidecar_path(path)
        self._fetched = _local_stamps(self._sidecar)
        self._scanned: tuple[int, int, str] | None = None  # end, block size and digest

    def begin(self, end: int, block_size: int) -> None:
        """Note what the log is before its bytes up to `end` are scanned.

        Raises SparkError where it is not the one that its sidecar tells of, as opening the image has found out.
        """
        if self._known is not None and meta.read(osfile.fs, self._sidecar / filenames.META) != self._known:
            raise SparkError(
                "it is not the log that its sidecar tells of, another program changed it",
                path=self.remote.uri,
                remedy=_open_once(self.remote),
            )
        if self._scanned is None:  # another scan is of the same log
            self._scanned = end, block_size, digest_of(self.remote.read, end, block_size)

    def send_back(self) -> None:
        """Send the index files that were made, and the sidecar where there was none. Raises LogChanged, SparkError."""
        change = self._change()
        if change:
            raise LogChanged(change, path=self.remote.uri, remedy="start again")
        now = _local_stamps(self._sidecar)
        made = [name for name in now if name.endswith(".index") and self._fetched.get(name) != now[name]]
        if self._known is None:
            there = self.remote.files(_SIDECAR)
            made = [name for name in (filenames.META, filenames.COMMIT) if name in now and name not in there] + made
        for name in made:
            self.remote.send(self._sidecar / name, f"{_SIDECAR}/{name}")

    def _change(self) -> str:
        """In what the log is not the one any more that was scanned, in words; else empty. Raises SparkError."""
        if self._scanned is None:
            return ""
        end, block_size, digest = self._scanned
        with tempfile.TemporaryDirectory(prefix="jitdb-") as folder:
            if _fetch_meta(self.remote, Path(folder)) != self._known:
                return "it was compacted, truncated or replaced while it was scanned"
        size = self.remote.size()
        if size < end:
            return f"it was truncated or replaced while it was scanned, expected {end:,} bytes or more, got {size:,}"
        found = digest_of(self.remote.read, end, block_size)
        return "" if found == digest else (
            f"its first or last block changed while it was scanned, expected digest {digest}, got {found}: it was "
            f"replaced, or a record there was deleted"
        )  # fmt: skip


@contextmanager
def staged(remote: Remote, block_size: int | None, indexes: Callable[[str], bool] | None) -> Iterator[Stage]:
    """The log as a local file of which only both ends are there, with its sidecar; indexes made there are sent back.

    indexes: by their names, which of its index files are gone on from; None: they are kept elsewhere, and none is made

    Raises LogError where there is no log, LogChanged when it became another one meanwhile, SparkError.
    """
    remote.size()  # is there a log at all?
    with tempfile.TemporaryDirectory(prefix="jitdb-") as folder:
        path = Path(folder) / remote.uri.rstrip("/").rpartition("/")[2]
        _fetch_rest(remote, filenames.sidecar_path(path), indexes or (lambda name: False))
        known = _fetch_steady(remote, path, block_size)
        if indexes is not None or known is None:  # before everything is scanned, not after
            remote.check_writable(_INDEXES)
        stage = Stage(remote, path, known)
        yield stage
        stage.send_back()


def _fetch_rest(remote: Remote, sidecar: Path, is_index: Callable[[str], bool]) -> None:
    """Copy what is needed of the sidecar and may be older than the log: all of it tells which log it is of."""
    for folder, target, is_needed in (
        (_SIDECAR, sidecar, _is_of_the_log),
        (_INDEXES, sidecar / filenames.INDEXES, is_index),
    ):
        names = [name for name in remote.files(folder) if not name.startswith(".")]
        if names:
            target.mkdir(exist_ok=True, parents=True)
        for name in filter(is_needed, names):
            remote.fetch(f"{folder}/{name}", target / name)


def _is_of_the_log(name: str) -> bool:
    """Whether a file of the sidecar says something of the log that is not fetched later."""
    return name not in (*_WORDS, *_CHANGING, filenames.LOCK) and not filenames.is_set_aside(name)


def _fetch_steady(remote: Remote, path: Path, block_size: int | None) -> meta.Meta | None:
    """Copy the words of the log's writer, and then the ends of the log: all as they were at one moment.

    The words come first: a log may go on behind them, and may not end before them. Gives what the sidecar says.
    """
    sidecar = filenames.sidecar_path(path)

    def look() -> dict[str, Stamp]:
        """Which files there are that change with the log, and how they look."""
        return {name: each for name, each in remote.files(_SIDECAR).items() if name in (*_WORDS, *_CHANGING)}

    for _ in range(_LOOKS):
        words = look()
        if not words.keys() & {*_CHANGING}:
            try:
                known = _fetch_words(remote, sidecar, words)
                size = remote.size()
                _fetch_edges(remote, path, size, max(EDGE, 2 * (block_size or (known.block_size if known else 0))))
                modified = remote.time()
            except SparkError:
                if look() == words:
                    raise
            else:
                if look() == words:
                    _set_time(path, sidecar, modified, known)
                    return known
        time.sleep(PAUSE)
    raise LogChanged(
        "it is written, compacted or repaired at this very moment, again and again",
        path=remote.uri,
        remedy="start the job when that has ended. What a writer that died left half done is finished by "
        "opening it with Log(path) where it lies",
    )


def _fetch_words(remote: Remote, sidecar: Path, words: dict[str, Stamp]) -> meta.Meta | None:
    for name in _WORDS:
        (sidecar / name).unlink(missing_ok=True)
        if name != filenames.META and name in words:
            sidecar.mkdir(exist_ok=True)
            remote.fetch(f"{_SIDECAR}/{name}", sidecar / name)
    return _fetch_meta(remote, sidecar)


def _fetch_meta(remote: Remote, folder: Path) -> meta.Meta | None:
    """Copy what the sidecar says the log is, if it says anything. Raises SparkError."""
    target = folder / filenames.META
    if filenames.META in remote.files(_SIDECAR):
        folder.mkdir(exist_ok=True)
        remote.fetch(f"{_SIDECAR}/{filenames.META}", target)
    try:
        return meta.read(osfile.fs, target)
    except LogCorrupt as error:
        raise SparkError(
            f"{remote.uri}{_SIDECAR}/{filenames.META}: damaged, expected {error.expected}, got {error.got}",
            remedy=_open_once(remote),
        ) from error


def _fetch_edges(remote: Remote, path: Path, size: int, edge: int) -> None:
    with open(path, "wb") as file:
        file.write(remote.read(0, min(size, edge)))
        if size > edge:
            begin = max(edge, size - edge)
            file.seek(begin)
            file.write(remote.read(begin, size - begin))


def _open_once(remote: Remote) -> str:
    return f"open it once with Log(path) where it lies, or remove {remote.uri}{_SIDECAR}, and start again"


def _local_stamps(sidecar: Path) -> dict[str, tuple[int, ...]]:
    """What tells the files of the image's sidecar from what they were before."""
    every = {path: path.stat() for path in sidecar.rglob("*") if path.is_file()}
    return {
        str(path.relative_to(sidecar)): (status.st_ino, status.st_size, status.st_mtime_ns)
        for path, status in every.items()
    }


def _set_time(path: Path, sidecar: Path, modified: int, known: meta.Meta | None) -> None:
    """Give the file the time that its last writer noted: a copy of a log is not a log that another program changed."""
    if known is not None:
        with closing(journal.JournalReader(osfile.fs, sidecar / filenames.COMMIT, known.generation)) as reader:
            base = reader.poll().base
        modified = base.stamp if base is not None and base.stamp else modified
    os.utime(path, ns=(modified, modified))
