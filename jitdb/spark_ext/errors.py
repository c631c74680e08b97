"""What can go wrong with Spark that cannot go wrong without it.

JitdbError
  SparkError         the machinery: packages, Java, the cluster
    JavaMissing        there is no Java that Spark can run on
    CopyDiffers        a worker sees another file at the log's path than the driver does
    LogChanged         the log was compacted, truncated or replaced while the job ran
    RecordMismatch     a record does not fit the table's schema
"""

from __future__ import annotations

from jitdb.errors import JitdbError


class SparkError(JitdbError):
    """Something is wrong with Spark, or with the machines it runs on."""


class JavaMissing(SparkError):
    """There is no Java that Spark can run on."""


class CopyDiffers(SparkError):
    """A worker sees no file, or another one, where the driver sees the log: the path is not shared by all machines."""


class LogChanged(SparkError):
    """The log was compacted, truncated or replaced while the job ran; nothing was written."""


class RecordMismatch(SparkError):
    """A record holds something that its column cannot. `offset` is where it lies in the log."""

    def __init__(self, message: str, *, column: str = "", offset: int | None = None) -> None:
        super().__init__(message)
        self.column = column
        self.offset = offset


def without_identity(path: object, so: str) -> SparkError:
    """The error for a log whose identity is kept nowhere. `so`: what cannot be done then."""
    return SparkError(
        f"{path}: it has no identity that is kept, so {so}: its sidecar cannot be written, or it is empty and another "
        f"program made it; open it once with Log(path), where its folder can be written"
    )


def missing_packages(error: ImportError) -> SparkError:
    """The error for an `import pyspark` that failed."""
    return SparkError(f"{error}: Spark is an extra of jitdb: pip install 'jitdb[spark]'")
