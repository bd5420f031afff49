"""The LSTM cell on one compiled loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import FLOAT16, FLOAT32, DType
from aclnn.contract.cases import fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_backward_case, thnn_fused_lstm_cell_case
from tests.harness import assert_sound, bits, call, turned

pytest.importorskip("numba")


@settings(max_examples=200)
@given(
    batch=st.sampled_from([1, 2, 15, 16, 17, 33, 300]),
    hidden_size=st.sampled_from([1, 7, 16, 63, 64, 65, 130]),
    has_bias=st.booleans(),
    has_grad_hy=st.booleans(),
    has_grad_cy=st.booleans(),
    dtype=st.sampled_from([FLOAT32, FLOAT16]),
    specials=st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 1e-6, 20.0])),
)
def test_any_sizes_and_values(specials: list[float], **sizes: object) -> None:
    case = thnn_fused_lstm_cell_backward_case(**sizes)  # type: ignore[arg-type]
    filled, rng = fill(case), np.random.default_rng(len(specials))
    for value in specials[:5]:
        view = filled[("cx", "cy", "storage")[rng.integers(3)]].view
        view[tuple(rng.integers(n) for n in view.shape)] = value
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
def test_same_bits_on_any_number_of_threads(dtype: DType) -> None:
    case = thnn_fused_lstm_cell_backward_case(100, 500, dtype=dtype)
    found = set()
    for threads in (1, 2, 5):
        with aclnn.threads(threads):
            filled = fill(case, 2)
            call(case, filled, engine="fast")
            found.add(tuple(bits(case, filled)))
    assert len(found) == 1


STRIDES = {"one number": (0, 0), "a number per cell": (1, 0), "turned": (1, 40), "every other": (1300, 2)}


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("strides", STRIDES.values(), ids=STRIDES)
def test_what_does_not_lie_side_by_side_is_read_where_it_lies(strides: tuple[int, int], dtype: DType) -> None:
    memory = np.random.default_rng(1).uniform(0.1, 0.9, 110_000).astype(dtype.numpy)
    steps = [s * dtype.itemsize for s in strides]
    states = [np.lib.stride_tricks.as_strided(memory[k:], (40, 600), steps) for k in range(4)]
    storage = np.lib.stride_tricks.as_strided(memory[7:], (40, 2400), steps)
    plan = aclnn.thnn_fused_lstm_cell_backward.plan(*states, storage, True)
    assert plan.kernel == "numba"
    found = aclnn.thnn_fused_lstm_cell_backward(*states, storage, True)
    dense = aclnn.thnn_fused_lstm_cell_backward(*(s.copy() for s in states), storage.copy(), True)
    assert [a.tobytes() for a in found] == [a.tobytes() for a in dense]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("has_bias", [True, False])
def test_results_whose_columns_do_not_lie_side_by_side(dtype: DType, has_bias: bool) -> None:
    backward = thnn_fused_lstm_cell_backward_case(40, 70, has_bias, dtype=dtype)
    assert_sound(turned(backward, "gradGatesOut", "gradCxOut"), "fast")
    forward = thnn_fused_lstm_cell_case(40, 70, has_bias, dtype)
    assert_sound(turned(forward, "inputGates", "hiddenGates", "cx", "hyOut", "cyOut", "storageOut"), "fast")


def test_who_serves_what() -> None:
    one, four = np.zeros((1, 1), np.float32), np.zeros((1, 4), np.float32)
    assert aclnn.thnn_fused_lstm_cell_backward.plan(one, one, one, one, four, True).kernel == "numba"
    assert aclnn.thnn_fused_lstm_cell.plan(four, four, one).kernel == "numba"


def test_the_hyperbolic_tangent_is_nearly_rounded_to_nearest() -> None:
    """grad_gates of o is tanh(cy) where grad_hy is 4 and o is 1/2."""
    cy = np.concatenate([np.linspace(-12, 12, 40_000), 10.0 ** np.linspace(-38, 1, 20_000)]).astype(np.float32)
    cy = cy.reshape(4, -1)
    storage = np.zeros((4, 4 * cy.shape[1]), np.float32)
    storage[:, 3 * cy.shape[1] :] = 0.5
    gates, _, _ = aclnn.thnn_fused_lstm_cell_backward(np.full_like(cy, 4), None, cy, cy, storage, True, engine="fast")
    exact = np.tanh(cy.astype(np.float64))
    units = np.abs(gates[:, 3 * cy.shape[1] :] - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units[np.abs(cy) >= 1e-37].max() <= 0.65
    assert units.max() <= 2  # a quarter of what is smaller is no normal number


def test_an_even_sum_of_equal_terms_is_within_the_bound() -> None:
    case = thnn_fused_lstm_cell_backward_case(20_000, 1)
    filled = fill(case)
    for name in ("gradHyOptional", "gradCOptional", "cx", "cy", "storage"):
        filled[name].view[...] = 0.7
    call(case, filled, engine="fast")
    assert all(output.sound for output in judge(case.op, case.call, views(filled, case.op)))
