"""Gaps behind what belongs to one thread."""

from __future__ import annotations

from aclnn.kernels.shared.workspace import AHEAD, FEW_ELEMENTS, FEW_STEPS, gap_behind


def test_who_goes_on_in_many_steps_has_a_gap_behind_it() -> None:
    assert gap_behind(FEW_ELEMENTS, FEW_STEPS) == AHEAD
    assert gap_behind(FEW_ELEMENTS - 1, 1000) == gap_behind(1 << 30, FEW_STEPS - 1) == 0
