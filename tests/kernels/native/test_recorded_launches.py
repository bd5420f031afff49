"""Launches that are written down instead of done: by one thread, and only what it made meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from aclnn.base.geometry import Array
from aclnn.contract.cases import fill
from aclnn.kernels.native import recorded_launches
from aclnn.kernels.registry import Run
from aclnn.ops.elu import elu_case
from aclnn.runtime.plan import make_plan

CASE = elu_case((5,))


def made() -> Run:
    return make_plan(CASE.op, CASE.call, "fast", 1).instantiate()


def computes(run: Run) -> bool:
    filled = fill(CASE, 1)
    given: list[Array] = [filled[name].view for name in ("self", "out")]
    given[1][...] = np.nan
    run(None, *given)
    return not np.isnan(given[1]).any()


def test_a_run_that_is_recorded_computes_nothing_and_all_others_do() -> None:
    before = made()
    with recorded_launches.recording() as recorded, ThreadPoolExecutor(1) as other:
        run = made()
        assert not computes(run)
        assert computes(before)
        assert other.submit(lambda: computes(made())).result()
        assert len(recorded.launches) == 1
    assert recorded_launches.current() is None
    assert not computes(run)  # it belongs to its tape for good
    assert computes(made())


def test_a_recording_ends_when_it_fails() -> None:
    try:
        with recorded_launches.recording():
            raise ValueError
    except ValueError:
        assert computes(made())


def test_a_finding_is_what_kernels_write_and_belongs_to_its_run() -> None:
    with recorded_launches.recording() as recorded:
        finding = recorded_launches.Finding()
    assert (recorded.finding, bool(finding)) == (finding.address, False)
    np.frombuffer(finding._place, np.int64)[0] = 1
    assert finding
    finding.clear()
    assert not finding


def test_shares_are_counted_behind_a_finding_and_anew_in_every_launch() -> None:
    finding = recorded_launches.Finding()
    words = np.frombuffer(finding._place, np.int64)
    words[:] = 1, 7
    finding.begin_launch()
    assert (words.tolist(), bool(finding)) == ([1, 0], True)
