"""Files of a log from different moments beside each other, any of them missing: what a backup, or a crash, leaves."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest
from deletion_cases import ASKED, BEFORE, SIDECAR, SINCE, ask, copied, delete, indexed, judge, put, remove
from engine_helpers import messages
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.log.io import filenames

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return indexed(tmp_path / "a.log")


def moments(path: Path, folder: Path) -> dict[str, Path]:
    """The log at several moments, each a copy of it and of its sidecar: closed, but for "written to"."""
    found = {"indexed": copied(path, folder / "indexed")}
    delete(path, *BEFORE)
    found["deleted"] = copied(path, folder / "deleted")
    with Log(path) as log:
        log.append_many(messages(5, first=60))
        log.flush()
        found["written to"] = copied(path, folder / "written to")
        log.append_many(messages(10, first=65))
        log.flush()
        JITDB(log).prepare(*ASKED)
    delete(path, *SINCE)
    found["grown"] = copied(path, folder / "grown")
    with Log(path) as log:
        log.compact()
        JITDB(log).prepare(*ASKED)
    found["compacted"] = copied(path, folder / "compacted")
    delete(path, 5, 6, 30)
    found["deleted again"] = copied(path, folder / "deleted again")
    return found


class TestFilesOfDifferentMoments:
    """Each file of the sidecar is missing, or of another moment than the log: the log as its file says, always."""

    @pytest.mark.parametrize("of_log", ["indexed", "deleted", "grown", "compacted", "deleted again"])
    def test_every_file_by_itself(self, path: Path, tmp_path: Path, of_log: str) -> None:
        found = moments(path, tmp_path / "moments")
        cases = list(product(SIDECAR, [None, *found]))
        step = tries(6, 1)
        for name, moment in cases[len(of_log) % step :: step]:
            if moment == of_log or (name == filenames.CHECKSUMS and moment is not None):
                continue
            for read_only in (True, False):
                shutil.rmtree(tmp_path / "mixed", ignore_errors=True)
                mixed = copied(found[of_log], tmp_path / "mixed")
                target = mixed.parent / "a.log.jitdb" / name
                source = None if moment is None else found[moment].parent / "a.log.jitdb" / name
                if target.exists():
                    remove(target)
                if source is not None and source.exists():
                    put(source, target)
                try:
                    ask(mixed, read_only=read_only)
                    ask(mixed, read_only=not read_only)
                    assert ask(mixed, read_only=True) == []
                except AssertionError as error:
                    raise AssertionError(f"log {of_log}, {name} {moment}, read_only={read_only}: {error}") from error

    @pytest.mark.parametrize("of_log", ["indexed", "deleted", "grown", "compacted", "deleted again"])
    def test_all_but_one_file(self, path: Path, tmp_path: Path, of_log: str) -> None:
        found = moments(path, tmp_path / "moments")
        del found["written to"]  # its checksums fit only the blocks that are as they were: see TestEverySubset
        cases = list(product([*SIDECAR, None], found))
        step = tries(4, 1)
        for kept, moment in cases[len(of_log) % step :: step]:
            if moment == of_log:
                continue
            shutil.rmtree(tmp_path / "mixed", ignore_errors=True)
            mixed = copied(found[moment], tmp_path / "mixed")
            shutil.copy2(found[of_log], mixed)
            if kept is not None:
                source, target = (each.parent / "a.log.jitdb" / kept for each in (found[of_log], mixed))
                if target.exists():
                    remove(target)
                if source.exists():
                    put(source, target)
            try:
                ask(mixed, read_only=True)
                ask(mixed, read_only=False)
                assert ask(mixed, read_only=True) == []
            except AssertionError as error:
                raise AssertionError(f"log {of_log}, all but {kept} of {moment}: {error}") from error

    @pytest.mark.parametrize("of_log", ["grown", "deleted again"])
    def test_checksums_of_another_moment_are_damage_that_is_told(self, path: Path, tmp_path: Path, of_log: str) -> None:
        found = moments(path, tmp_path / "moments")
        for moment in found:
            mixed = copied(found[of_log], tmp_path / f"{moment} of {of_log}")
            put(found[moment].parent / "a.log.jitdb" / "checksums", mixed.parent / "a.log.jitdb" / "checksums")
            with Log(mixed, read_only=True) as log:
                damaged = {finding.what for finding in log.verify().findings} & {"block"}
            if damaged:
                with Log(mixed) as log:
                    log.repair()
            ask(mixed, read_only=False)


class TestEverySubset:
    """Any of the sidecar's files is missing, or of another moment (of before a compaction, of a log that was copied
    while it was written to, of another log): judged by the bytes in the log's file alone.
    """

    LOGS = ("indexed", "written to", "grown", "compacted", "other")

    @pytest.fixture(scope="class")
    def found(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("moments")
        with Log(folder / "a.log", codec="bipf", block_size=1024) as log:
            log.append_many(messages(60))
        found = moments(folder / "a.log", folder)
        (folder / "another").mkdir()
        with Log(folder / "another" / "a.log", codec="bipf", block_size=1024) as log:
            log.append_many(messages(50, first=500))
        found["other"] = folder / "another" / "a.log"
        delete(found["other"], 7, 8, 33)
        return {moment: found[moment] for moment in self.LOGS}

    @pytest.mark.parametrize("of_log", LOGS)
    @pytest.mark.parametrize("read_only", [True, False])
    def test_of_the_files_beside_a_log(
        self, found: dict[str, Path], tmp_path: Path, of_log: str, read_only: bool
    ) -> None:
        names = (filenames.META, filenames.COMMIT, filenames.CHECKSUMS, filenames.DELETIONS)
        mixed, side = tmp_path / "a.log", tmp_path / "a.log.jitdb"
        cases, step = list(product([None, *found], product((True, False), repeat=len(names)))), tries(3, 1)
        for moment, chosen in cases[(self.LOGS.index(of_log) + read_only) % step :: step]:
            shutil.rmtree(side, ignore_errors=True)
            copied(found[of_log], tmp_path, names)
            for name in (name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen):
                (side / name).unlink(missing_ok=True)
                source = None if moment is None else found[moment].parent / "a.log.jitdb" / name
                if source is not None and source.exists():
                    shutil.copy2(source, side / name)
            try:
                told = judge(mixed, read_only=read_only)
                assert not told or moment != of_log or of_log == "written to", told
            except BaseException as error:
                error.add_note(f"log {of_log}, of {moment}: {[n for n, c in zip(names, chosen, strict=True) if c]}")
                raise

    @pytest.mark.parametrize("read_only", [True, False])
    @pytest.mark.parametrize("of_sidecar", LOGS)
    def test_all_but_the_journal_of_commits(
        self, found: dict[str, Path], tmp_path: Path, of_sidecar: str, read_only: bool
    ) -> None:
        """Its entries say which log `meta` and the indexes speak of."""
        step = tries(2, 1)
        for of_log in self.LOGS[(self.LOGS.index(of_sidecar) + read_only) % step :: step]:
            shutil.rmtree(tmp_path / "a.log.jitdb", ignore_errors=True)
            mixed = copied(found[of_sidecar], tmp_path)
            (tmp_path / "a.log.jitdb" / "commit").unlink()
            shutil.copy2(found[of_log], mixed)
            first, *others = ask(mixed, read_only=read_only)
            assert "a.log.jitdb/meta stands without commit" in first
            assert all("a.log.jitdb/indexes" in each for each in others)
            assert ask(mixed, read_only=True) == ask(mixed, read_only=False) == []
