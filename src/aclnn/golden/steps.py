"""Dumps as a whole: steps and ranks, shared among processes and machines, and how their calls hang together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from aclnn.base.status import invalid
from aclnn.golden.dumps import Judge, Judgement
from aclnn.golden.inherited import link, note_contents
from aclnn.golden.judge.baselines import beside
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.judge.standards import TWO_BASELINES
from aclnn.golden.outputs import Asked
from aclnn.golden.processes import in_processes
from aclnn.golden.read.msprobe import dump as dumps
from aclnn.golden.read.msprobe.calls import FORWARD, Unit, is_ours
from aclnn.golden.read.msprobe.dump import Dump, Recorded
from aclnn.golden.result import FAIL, ORDERS, PASS, SKIPPED, WHOLE, DumpComparison, OutputReport
from aclnn.golden.texts import Text
from aclnn.runtime import numpy_threads, settings

Told = Callable[[Judgement, float], None]  # gets every judgement, and what part of the work is done
_LARGE = 10**5  # elements that count as much as the call itself, in telling how far the work is


@dataclass(frozen=True)
class SharedWork:
    """How the calls of dumps are shared out."""

    jobs: int = 1
    shard: tuple[int, int] = WHOLE  # which part of how many
    told: Told | None = None


def parsed_shard(text: str) -> tuple[int, int]:
    """'2/8' as numbers."""
    part, _, of = text.partition("/")
    if not (part.isdecimal() and of.isdecimal() and 1 <= int(part) <= int(of) <= 10**6):
        raise invalid(f"--shard is {text!r}; it must be a part and how many there are, such as 2/8.", "shard")
    return int(part), int(of)


def compare_dumps(
    path: Path, folders: Sequence[Path], asked: Asked, work: SharedWork, also: Path | None
) -> DumpComparison:
    """Every call of ours in the dumps, judged."""
    reports: list[OutputReport] = []
    for n, folder in enumerate(folders):
        prefix = "" if len(folders) == 1 else f"{folder.relative_to(path).as_posix()}/"
        other = None if also is None else _other(also, folder, path)
        found = list(_judgements(folder, other, asked, replace(work, told=_share(work.told, n, len(folders)))))
        found.sort(key=lambda judgement: judgement.reports[0].order)
        note_contents(Dump(folder, {}), found, whole=work.shard == WHOLE)
        for judgement in found:
            for report in judgement.reports:
                report.case, report.order = f"{prefix}{report.case}", report.order + n * ORDERS
                reports.append(report)
    link(reports)
    if not reports and work.shard == WHOLE:
        what = ", ".join(str(f) for f in folders[:3])
        raise invalid(f"{what} has no call of ours: no convolution, no ELU, no LSTM.")
    return DumpComparison(asked.standard, reports, str(path), work.shard)


def _share(told: Told | None, n: int, count: int) -> Told | None:
    if told is None:
        return None
    return lambda judgement, part: told(judgement, (n + part) / count)


def _judgements(folder: Path, other: Path | None, asked: Asked, work: SharedWork) -> Iterator[Judgement]:
    """The calls of one dump; those of a third party first, so that each is judged beside what it is compared with."""
    judge = Judge(dumps.load(folder, is_ours), asked)
    part, of = work.shard
    count = len(judge.units)
    chosen = range((part - 1) * count // of, part * count // of)
    if other is None:
        yield from _worked(judge, chosen, work)
        return
    thirds = _third_party(other, {judge.units[i].name for i in chosen}, asked, work)
    yield from _worked(judge, chosen, replace(work, told=_share(work.told, 1, 2)), thirds)


def _worked(judge: Judge, chosen: Sequence[int], work: SharedWork, thirds: Thirds | None = None) -> Iterator[Judgement]:
    weights = {i: _weight(judge.units[i]) for i in chosen}
    done, whole = 0.0, sum(weights.values()) or 1.0
    for i, judgement in _in_processes(judge, chosen, work.jobs) if work.jobs > 1 else _here(judge, chosen):
        if thirds is not None:
            _stand_beside(judgement, thirds, judge.asked)
        done += weights[i]
        if work.told is not None:
            work.told(judgement, done / whole)
        yield judgement


def _weight(unit: Unit) -> float:
    call, elements = unit.call, 0
    times = 1 if unit.direction == FORWARD else 2  # a gradient is twice the work of its forward
    for part in (call.forward, call.backward):
        for listed in part.values() if isinstance(part, dict) else ():
            found = listed if isinstance(listed, list) else []
            elements += sum(math.prod(r.shape) for r in found if isinstance(r, Recorded))
    return 1 + times * min(elements, 10**15) / _LARGE  # what an entry says may be beyond any number


def _here(judge: Judge, chosen: Sequence[int]) -> Iterator[tuple[int, Judgement]]:
    for i in chosen:
        with numpy_threads.one_thread():
            judgement = light(judge.judge(judge.units[i]))
        yield i, judgement


def _in_processes(judge: Judge, chosen: Sequence[int], jobs: int) -> Iterator[tuple[int, Judgement]]:
    """The same in several processes, each on one thread; each reads dump.json itself."""
    return in_processes(jobs, _in_process, {i: (judge.dump.folder, judge.asked, i) for i in chosen})


_JUDGES: dict[Path, Judge] = {}


def _in_process(folder: Path, asked: Asked, index: int) -> Judgement:
    if folder not in _JUDGES:
        _JUDGES[folder] = Judge(dumps.load(folder, is_ours), asked)
    judge = _JUDGES[folder]
    with settings.threads(1), numpy_threads.one_thread():
        return light(judge.judge(judge.units[index]))


def light(judgement: Judgement) -> Judgement:
    """Without what only pictures of wrong outputs need: there may be thousands that are right."""
    for report in judgement.reports:
        found = report.measured
        if found is not None and not found.misses:
            found.strips, found.miss_strips, found.listed = [], [], []
    return judgement


# A third party's result beside the target's


def _other(also: Path, folder: Path, path: Path) -> Path:
    """The dump of the third party that stands for one of the target's: by the same way below, or the only one."""
    found = dumps.find(also)
    same = also / folder.relative_to(path) if folder != path else also
    if same in found:
        return same
    if len(found) != 1:
        raise invalid(f"{also} has {len(found)} dumps; which one stands beside {folder} is not known.", "also")
    return found[0]


Thirds = Mapping[tuple[str, str], Measured]  # by call and output


def _third_party(other: Path, names: Set[str], asked: Asked, work: SharedWork) -> Thirds:
    """How far the results of a third party are from what its own inputs make: neither is the other's truth."""
    judge = Judge(dumps.load(other, is_ours), replace(asked, hints=False))
    told = _share(work.told, 0, 2)
    quiet = None if told is None else lambda judgement, part: told(Judgement(judgement.unit, []), part)
    chosen = [i for i, unit in enumerate(judge.units) if unit.name in names]
    found = _worked(judge, chosen, replace(work, told=quiet))
    return {(r.case, r.output): r.measured for j in found for r in j.reports if r.measured is not None}


def _stand_beside(judgement: Judgement, thirds: Thirds, asked: Asked) -> None:
    """Puts the third party's errors beside those of a call; where that is the standard, they decide."""
    for report in judgement.reports:
        third = thirds.get((report.case, report.output))
        if report.measured is None or report.rule is None:
            continue
        if third is not None:
            report.also = beside(report.measured, third, report.rule.row)
        if asked.standard.name != TWO_BASELINES:
            continue
        if report.also is None:
            report.status, report.why = SKIPPED, _ALONE
        else:
            report.criteria = report.also.criteria
            report.status = PASS if report.also.holds else FAIL


_ALONE = Text("the third party's dump does not have it", "第三方dump中没有该输出")
