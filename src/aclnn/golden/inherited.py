"""Which call reads the wrong result of which: found by contents, for a dump does not say where a tensor came from.

Contents are noted call by call, so that reports of the parts of a dump know enough to be put together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby

from aclnn.base.status import AclnnError
from aclnn.golden.dumps import Judgement
from aclnn.golden.read.msprobe.dump import Dump, Recorded
from aclnn.golden.result import ORDERS, OutputReport


def note_contents(dump: Dump, found: Sequence[Judgement], whole: bool) -> None:
    """Notes what wrong outputs hold and what calls read; of a whole dump only what can be the same by its size."""
    kinds = set()
    for judgement in found:
        for report in judgement.reports:
            if report.is_wrong and report.output in judgement.outputs:
                recorded = judgement.outputs[report.output]
                kinds.add((recorded.shape, recorded.dtype))
                report.content = _digest(dump, recorded)
    for judgement in found:
        read = (r for r in judgement.inputs if not whole or (r.shape, r.dtype) in kinds)
        digests = tuple(filter(None, (_digest(dump, r) for r in read)))
        for report in judgement.reports:
            report.reads = digests


def link(reports: Sequence[OutputReport]) -> None:
    """Says of each call whether it reads what an earlier one of its dump got wrong."""
    in_order = sorted(reports, key=lambda r: r.order)
    for _, of_a_dump in groupby(in_order, key=lambda r: r.order // ORDERS):
        wrong: dict[str, str] = {}
        for _, call in groupby(of_a_dump, key=lambda r: r.case):
            together = list(call)
            origin = next((wrong[digest] for digest in together[0].reads if digest in wrong), "")
            for report in together:
                report.inherits = origin
                if report.is_wrong and report.content:
                    wrong[report.content] = report.case


def _digest(dump: Dump, recorded: Recorded) -> str:
    """The contents in a few letters; none of what is empty or cannot be read, which says nothing of its origin."""
    if 0 in recorded.shape:
        return ""
    try:
        array = dump.array(recorded)
    except AclnnError:
        return ""
    seen = hashlib.blake2b(f"{recorded.shape} {recorded.dtype}".encode(), digest_size=16)
    seen.update(array.tobytes())
    return seen.hexdigest()
