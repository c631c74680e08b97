"""Logs that only Hadoop can read: hdfs://, s3a://, abfs://, file:// …

A log is blocks of one size, so to Hadoop it is a file of fixed-length records, which workers read through Spark. The
driver needs little of it: the first and the last blocks, by which it is known, and the sidecar. It fetches these into a
local folder of the same shape, a sparse file for the log, works there as on any log, and sends back what it made.

There are no locks on such a file system: of two prebuilds at a time, the later one's index files stay.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import NotALog
from jitdb.log import files, journal, meta, osfile
from jitdb.spark_ext.building.ranges import LARGEST, SMALLEST
from jitdb.spark_ext.errors import LogChanged, SparkError

if TYPE_CHECKING:
    from pyspark import SparkContext

EDGE: Final = 1 << 20  # bytes that are fetched of both ends of a log, or two blocks if they are larger
_SENT: Final = (files.META, files.COMMIT)  # what opening a log may make in its sidecar
_SPLIT: Final = "mapreduce.input.fileinputformat.split.{}"  # Hadoop's settings of how many bytes a split has


class Split(NamedTuple):
    """What one partition of Spark holds of the log."""

    start: int
    stop: int


class Remote:
    """One log on a Hadoop file system, through the driver's Java. What Hadoop complains of is a SparkError."""

    def __init__(self, context: SparkContext, uri: str) -> None:
        self.uri = uri
        self._context = context
        self._jvm: Any = context._jvm
        with self._told("cannot be reached"):
            self._fs = self._path(uri).getFileSystem(context._jsc.hadoopConfiguration())

    def size(self) -> int:
        """Bytes of the log. Raises NotALog where there is none."""
        with self._told("cannot be reached"):
            path = self._path(self.uri)
            if not self._fs.exists(path):
                raise NotALog("there is no such file", path=self.uri)
            return int(self._fs.getFileStatus(path).getLen())

    def time(self) -> int:
        """When the log was changed last, nanoseconds since 1970; Hadoop knows the milliseconds."""
        with self._told("cannot be reached"):
            return int(self._fs.getFileStatus(self._path(self.uri)).getModificationTime()) * 1_000_000

    def read(self, start: int, size: int) -> bytes:
        """Some bytes of the log."""
        with self._told("cannot be read"):
            stream = self._fs.open(self._path(self.uri))
            try:
                with self._told("cannot be read in parts, which each task must: keep it where Hadoop can seek"):
                    stream.seek(start)
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))
            finally:
                stream.close()

    def names(self, folder: str) -> list[str]:
        """The files in a folder that belongs to the log; `folder` is added to its URI."""
        with self._told("cannot be listed", folder):
            path = self._path(self.uri + folder)
            if not self._fs.exists(path):
                return []
            return [status.getPath().getName() for status in self._fs.listStatus(path) if status.isFile()]

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file that belongs to the log; `name` is added to its URI."""
        with self._told("cannot be read", name):
            self._fs.copyToLocalFile(False, self._path(self.uri + name), self._path(target.as_uri()), True)

    def check_writable(self, folder: str) -> None:
        """Whether files can be written into a folder that belongs to the log, which is made. Raises SparkError."""
        with self._told("cannot be written", folder):
            self._fs.mkdirs(self._path(self.uri + folder))
            probe = self._path(f"{self.uri}{folder}/.{os.getpid()}.tmp")
            self._fs.create(probe, True).close()
            self._fs.delete(probe, False)

    def send(self, source: Path, name: str) -> None:
        """Put a file in the place of one that belongs to the log, at once where the file system can."""
        whole = self._path(self.uri + name)
        part = self._path(f"{whole.getParent()}/.{whole.getName()}.{os.getpid()}.tmp")
        with self._told("cannot be written", name):
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

    def splits(self, block_size: int, range_bytes: int | None) -> tuple[Any, list[Split]]:
        """The log's blocks as an RDD of bytes, and what each partition holds: as Hadoop splits it, or as asked."""
        from pyspark.rdd import RDD
        from pyspark.serializers import NoOpSerializer

        conf = self._jvm.org.apache.hadoop.conf.Configuration(self._context._jsc.hadoopConfiguration())
        # Some file systems call 4 KiB a block.
        conf.setLong(_SPLIT.format("minsize"), range_bytes or SMALLEST)
        conf.setLong(_SPLIT.format("maxsize"), range_bytes or LARGEST)
        found = []
        with self._told("cannot be read"):
            blocks = self._context._jsc.sc().binaryRecords(self.uri, block_size, conf)
            for part in blocks.partitions():
                split = part.serializableHadoopSplit().value()
                found.append(Split(int(split.getStart()), int(split.getStart() + split.getLength())))
        return RDD(blocks.toJavaRDD(), self._context, NoOpSerializer()), found  # as binaryRecords of Python does

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    @contextmanager
    def _told(self, complaint: str, name: str = "") -> Iterator[None]:
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


@contextmanager
def staged(remote: Remote, block_size: int | None, *, keeps_indexes: bool) -> Iterator[Path]:
    """The log as a local file of which only both ends are there, with its sidecar; what is made there is sent back.

    keeps_indexes: whether index files will be made there

    Raises LogError where there is no log, LogChanged when it became shorter meanwhile, SparkError.
    """
    size = remote.size()
    with tempfile.TemporaryDirectory(prefix="jitdb-") as folder:
        path = Path(folder) / remote.uri.rstrip("/").rpartition("/")[2]
        sidecar = files.sidecar_path(path)
        before = _fetch_sidecar(remote, sidecar)
        known = meta.read(osfile.fs, sidecar / files.META)
        if keeps_indexes or known is None:  # before everything is scanned, not after
            remote.check_writable(f"{files.SIDECAR_SUFFIX}/{files.INDEXES}")
        _fetch_edges(remote, path, size, max(EDGE, 2 * (block_size or (known.block_size if known else 0))))
        _set_time(path, sidecar, remote.time())
        yield path
        if remote.size() < size:
            raise LogChanged(f"{remote.uri}: it was truncated or replaced while it was scanned: start again")
        for name, stamp in _stamps(sidecar).items():
            is_ours = name in _SENT or name.endswith(".index")
            if is_ours and before.get(name) != stamp:
                remote.send(sidecar / name, f"{files.SIDECAR_SUFFIX}/{name}")


def _fetch_edges(remote: Remote, path: Path, size: int, edge: int) -> None:
    with open(path, "wb") as file:
        file.write(remote.read(0, min(size, edge)))
        if size > edge:
            begin = max(edge, size - edge)
            file.seek(begin)
            file.write(remote.read(begin, size - begin))


def _fetch_sidecar(remote: Remote, sidecar: Path) -> dict[str, Any]:
    """Copy all that lies in the sidecar, but for its lock; what there is then."""
    for folder in ("", f"/{files.INDEXES}"):
        names = remote.names(files.SIDECAR_SUFFIX + folder)
        if names:
            Path(f"{sidecar}{folder}").mkdir(exist_ok=True)
        for name in names:
            if name != files.LOCK and not name.startswith("."):
                remote.fetch(f"{files.SIDECAR_SUFFIX}{folder}/{name}", Path(f"{sidecar}{folder}") / name)
    return _stamps(sidecar)


def _stamps(sidecar: Path) -> dict[str, Any]:
    found = {}
    for path in sidecar.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[str(path.relative_to(sidecar))] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def _set_time(path: Path, sidecar: Path, time: int) -> None:
    """Give the file the time that its last writer noted: a copy of a log is not a log that another program changed."""
    known = meta.read(osfile.fs, sidecar / files.META)
    if known is not None:
        reader = journal.JournalReader(osfile.fs, sidecar / files.COMMIT, known.generation)
        try:
            base = reader.poll().base
        finally:
            reader.close()
        time = base.stamp if base is not None and base.stamp else time
    os.utime(path, ns=(time, time))


def check_whole(uri: str, size: int, block_size: int) -> None:
    """Whether the log ends with a block. Raises SparkError: Spark's way of saying so is no help."""
    if size % block_size:
        raise SparkError(
            f"{uri}: {size:,} bytes are no whole number of blocks of {block_size:,}: it is being written or was cut off"
        )
