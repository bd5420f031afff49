"""What the LSTM's kernels must do beyond being right on small cases: packing, and the error bound on long sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.lstm import numpy as lstm
from aclnn.kernels.lstm.numpy import Packing
from aclnn.ops.lstm import lstm_backward_case
from tests.harness import call, tensors

NAN = np.nan


def test_packing_takes_the_positions_that_take_part_step_by_step() -> None:
    packing = Packing(np.array([3, 1, 0]), 3, 3)
    padded = np.arange(9.0).reshape(3, 3, 1)
    assert packing.pack(padded, np.float64).ravel().tolist() == [0, 1, 2, 3]
    assert packing.unpack(np.array([[5.0], [6], [7], [8]]))[..., 0].tolist() == [[5, 6, 7], [8, 0, 0], [0, 0, 0]]
    assert packing.rows == [slice(0, 3), slice(3, 4), slice(4, 4)]


def test_each_step_starts_from_the_one_before_it_in_its_direction() -> None:
    packing = Packing(np.array([3, 1]), 2, 3)
    states, initial = np.array([[1.0], [2], [3], [4]]), np.array([[10.0], [20], [30]])
    assert packing.before(states, initial, reverse=False).ravel().tolist() == [10, 20, 30, 1]
    assert packing.before(states, initial, reverse=True).ravel().tolist() == [4, 20, 30, 10]


def test_packing_of_full_sequences_copies_nothing() -> None:
    padded = np.ones((3, 2, 4), np.float32)
    assert np.shares_memory(Packing(None, 3, 2).pack(padded, np.float32), padded)


def assert_numpy_is_sound(case: Case, fill_with: float | None) -> None:
    filled = fill(case)
    if fill_with is not None:
        for name, tensor in tensors(filled).items():
            if not case.op.by_name[name.partition("[")[0]].out:
                tensor.view[...] = fill_with
    call(case, filled, engine="numpy")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("value", [None, 0.3])
@pytest.mark.parametrize(
    "sizes",
    [
        {"steps": 50, "batch": 4000, "input_size": 1, "hidden_size": 1},  # 200,000 terms in dparams
        {"steps": 1, "batch": 20000, "input_size": 4, "hidden_size": 1},  # where a float32 BLAS is worst
        {"steps": 2, "batch": 2, "input_size": 3, "hidden_size": 512},  # 2048 terms in every product with w_hh
        {"steps": 3, "batch": 2, "input_size": 2, "hidden_size": 64, "layers": 2, "bidirectional": True},
    ],
    ids=str,
)
def test_long_sums_are_within_the_allowed_error_also_of_equal_terms(sizes: dict[str, Any], value: float | None) -> None:
    assert_numpy_is_sound(lstm_backward_case(**sizes), value)


def test_nothing_is_written_when_the_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(rows: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(lstm, "sum_rows", fails)
    case = lstm_backward_case(layers=2)
    filled = fill(case)
    with pytest.raises(aclnn.AclnnError, match="kernel numpy failed with ValueError: planted") as refused:
        call(case, filled, engine="numpy")
    assert refused.value.code == 561000
    outputs = ("dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut")
    assert all(np.isnan(t.view).all() for n, t in tensors(filled).items() if n.partition("[")[0] in outputs)
