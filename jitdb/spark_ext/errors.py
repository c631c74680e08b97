"""What can go wrong with Spark that cannot go wrong without it.

JitdbError
  SparkError         the machinery: packages, Java, the cluster
    JavaMissing        there is no Java that Spark can run on
    CopyDiffers        a worker sees another file at the log's path than the driver does
    LogChanged         the log was compacted, truncated or replaced while the job ran
    RecordMismatch     a record does not fit the table's schema
"""

from __future__ import annotations

import os

from jitdb.errors import JitdbError, Remedy


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

    def __init__(
        self,
        reason: str,
        *,
        path: str | os.PathLike[str] | None = None,
        column: str = "",
        offset: int | None = None,
        remedy: Remedy | str | None = None,
    ) -> None:
        super().__init__(reason, path=path, remedy=remedy)
        self.column = column
        self.offset = offset


def without_identity(path: str | os.PathLike[str], so: str) -> SparkError:
    """The error for a log whose identity is kept nowhere. `so`: what cannot be done then."""
    return SparkError(
        f"it has no identity that is kept, so {so}: its sidecar cannot be written, or it is empty and another program "
        f"made it",
        path=path,
        remedy="open it once with Log(path), where its folder can be written",
    )


def missing_packages(error: ImportError) -> SparkError:
    """The error for an `import pyspark` that failed."""
    return SparkError(str(error), remedy="Spark is an extra of jitdb: pip install 'jitdb[spark]'")
