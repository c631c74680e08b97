"""Which of many small files hold no answer, as the indexes of their bundles show: these are not even opened.

A question to a folder as one log makes bundles: many small files under one set of indexes (log/lines/bundles/). Where
these are fresh, one question tells for a thousand files which of them have answers.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jitdb.engine.database import JITDB
from jitdb.errors import JitdbError
from jitdb.log.lines.bundles.bundled_lines import BundledLines
from jitdb.log.objects.urls import is_url
from jitdb.logset.bundling import Together
from jitdb.logset.opening import bundles_of
from jitdb.operators.nodes.operation import NOTHING, Operation

if TYPE_CHECKING:
    from jitdb.log.lines.bundles.bundle import Bundle
    from jitdb.logset.member import Member
    from jitdb.spark_ext.options import ReadOptions

_MOST: Final = 64 << 20  # bytes of records that are read to be certain of answers

logger: Final = logging.getLogger("jitdb.spark")


def without_answers(members: Sequence[Member], options: ReadOptions) -> set[str]:
    """The paths of files in which nothing can match, as they are now."""
    where, is_usual = options.where, not (options.codec or options.block_size or options.allow_prefix)
    if where is None or options.indexes == "none" or options.log_format or not is_usual:
        return set()
    if any(leaf.names_places for leaf in where.leaves()):
        return set()
    by_path = {each.path if is_url(each.path) else os.path.realpath(each.path): each for each in members}
    found = set[str]()
    for bundle in bundles_of(members, options.index_folder or None):
        there = {number: by_path.get(bundle.path_of(file)) for number, file in enumerate(bundle.files)}
        same = {
            number: member
            for number, member in there.items()
            if member is not None and bundle.files[number].is_in(bundle.folder)
        }
        try:
            found |= _without(bundle, same, where, options)
        except (JitdbError, OSError) as error:  # the files are asked one by one
            logger.info("%s: what it holds is not told by its indexes: %s", bundle.path, error)
    return found


def _without(bundle: Bundle, members: dict[int, Member], where: Operation, options: ReadOptions) -> set[str]:
    """Those of a bundle."""
    asked: defaultdict[Operation, dict[int, Member]] = defaultdict(dict)
    for number, member in members.items():
        asked[where.narrowed(member.fields)][number] = member
    found = set[str]()
    fields = options.fields
    settings: dict[str, Any] = {"timestamp": fields.timestamp, "time_unit": fields.unit, "sequence": fields.sequence[0]}
    with JITDB(BundledLines(bundle), threads=1, progress=False, **settings) as db:
        for operation, some in asked.items():
            if operation == NOTHING:
                continue
            question = Together(bundle, some).among(operation)
            plan = db.explain(question)
            if plan.scan_bytes or plan.confirm_bytes > _MOST:
                continue
            offsets = db.all(question, as_offsets=True, sort_by="arrival")
            holding = {member.path for member, _ in Together(bundle, some).places(offsets)}
            found |= {member.path for member in some.values()} - holding
    return found
