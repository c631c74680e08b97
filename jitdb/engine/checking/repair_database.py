"""Repairing a log with its indexes: those that cannot be used are dropped, and built again in one scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from jitdb.engine.checking.check_indexes import SOUND, IndexVerification
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import Requirement
from jitdb.errors import LogError
from jitdb.indexes.files.folder import index_files
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io import osfile
from jitdb.log.repair.report import RepairAction, RepairReport

if TYPE_CHECKING:
    from jitdb.log.maintained import MaintainedSource


def repair_database(
    log: MaintainedSource,
    folder: FilePath | None,
    manager: IndexManager,
    given: Sequence[Requirement],
    threads: int,
    progress: Callable[[int, int], object],
) -> RepairReport:
    """See JITDB.repair."""
    done = log.repair(progress)
    manager.follow(None)
    checks = IndexVerification(log, folder, given, None, threads).run(progress)
    bad = [check for check in checks if check.state != SOUND]
    if not bad:
        return done
    names = {check.file for check in bad}
    specs = [head.spec for path, head in index_files(osfile.fs, folder) if head is not None and path.name in names]
    dropped, kept = [], []
    for check in bad:
        try:
            manager.forget_files([check.file])
            dropped.append(
                RepairAction(f"index {check.file} ({check.state}): dropped, and built again when it is needed")
            )
        except LogError as error:
            kept.append(f"index {check.file} ({check.state}) stays: {error}")
    needs = {need.spec: need for need in given}
    manager.prepare([need for spec in specs if (need := _need(spec, needs)) is not None], None)
    return replace(done, actions=(*done.actions, *dropped), notes=(*done.notes, *kept))


def _need(spec: IndexSpec, given: dict[IndexSpec, Requirement]) -> Requirement | None:
    """What building the index takes; None where only the next question brings it."""
    if spec.form == "predicate" or spec.index_type is not None:
        return given.get(spec)
    return None if spec.form == "deleted" else Requirement(spec)
