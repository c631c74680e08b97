"""Logs that only Hadoop can read: hdfs://, s3a://, abfs://, file:// …

A log is blocks of one size, so to Hadoop it is a file of fixed-length records, which workers read through Spark. What
the driver needs of it is fetched by staging.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import NotALog
from jitdb.spark_ext.building.ranges import LARGEST, size_for
from jitdb.spark_ext.errors import SparkError

if TYPE_CHECKING:
    from pyspark import SparkContext

_HDFS_BLOCK: Final = 128 << 20  # bytes, as it comes: a task that reads one reads it on the machine that holds it
_SPLIT: Final = "mapreduce.input.fileinputformat.split.{}"  # Hadoop's settings of how many bytes a split has


class Split(NamedTuple):
    """What one partition of Spark holds of the log."""

    start: int
    stop: int


class Stamp(NamedTuple):
    """What tells a file from what it was before."""

    size: int
    time: int  # of its last change, milliseconds since 1970


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

    def files(self, folder: str) -> dict[str, Stamp]:
        """The files in a folder that belongs to the log, by their names; `folder` is added to its URI."""
        with self._told("cannot be listed", folder):
            path = self._path(self.uri + folder)
            if not self._fs.exists(path):
                return {}
            found = [status for status in self._fs.listStatus(path) if status.isFile()]
            return {each.getPath().getName(): Stamp(each.getLen(), each.getModificationTime()) for each in found}

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
        # Some file systems call 4 KiB a block, or 32 MiB; each task more costs scanning and merging.
        least = min(size_for(self.size(), self._context.defaultParallelism), _HDFS_BLOCK)
        conf.setLong(_SPLIT.format("minsize"), range_bytes or least)
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


def check_whole(uri: str, size: int, block_size: int) -> None:
    """Whether the log ends with a block. Raises SparkError: Spark's way of saying so is no help."""
    if size % block_size:
        raise SparkError(
            f"{size:,} bytes are no whole number of blocks of {block_size:,}: it is being written or was cut off",
            path=uri,
        )
