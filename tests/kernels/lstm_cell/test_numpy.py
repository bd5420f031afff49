"""What the cell's kernels must do beyond being right on small cases: hold the error bound on long sums."""

from __future__ import annotations

import numpy as np
import pytest

from aclnn.contract.cases import fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.lstm_cell.numpy import slopes
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_backward_case
from tests.harness import call


@pytest.mark.parametrize("equal", [True, False])
def test_the_bias_of_a_batch_of_200000_is_within_the_allowed_error(equal: bool) -> None:
    case = thnn_fused_lstm_cell_backward_case(200_000, 1)
    filled = fill(case)
    if equal:
        for name in ("gradHyOptional", "gradCOptional", "cx", "cy", "storage"):
            filled[name].view[...] = 0.3
    call(case, filled, engine="numpy")
    assert all(output.sound for output in judge(case.op, case.call, views(filled, case.op)))


def test_slopes_of_saturated_gates_keep_their_digits() -> None:
    almost_one = np.float32(1 - 2.0**-20)
    gates = [np.array([almost_one])] * 4
    slope = slopes(gates, np.ones(1, np.float32), np.array([almost_one]))
    exact = float(almost_one) * (1 - float(almost_one) ** 2)
    assert abs(float(slope.g[0]) / exact - 1) < 4 * 2.0**-24
    assert abs(float(slope.cell[0]) / exact - 1) < 4 * 2.0**-24


def test_nothing_is_written_when_the_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    import aclnn
    from aclnn.kernels.lstm_cell import numpy as lstm_cell

    def fails(rows: object) -> None:
        raise MemoryError

    monkeypatch.setattr(lstm_cell, "sum_rows", fails)
    case = thnn_fused_lstm_cell_backward_case()
    filled = fill(case)
    with pytest.raises(aclnn.AclnnError, match="out of memory") as refused:
        call(case, filled, engine="numpy")
    assert refused.value.code == 361001
    assert all(np.isnan(filled[name].view).all() for name in ("gradGatesOut", "gradCxOut", "gradBiasOut"))
