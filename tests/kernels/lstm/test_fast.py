"""The LSTM on compiled loops and matmuls: any sizes and lengths, NaN where it takes no part, one sequence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import FLOAT16, FLOAT32, DType
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.matmul import matrix
from aclnn.ops.lstm import lstm_backward_case
from aclnn.ops.lstm_forward import lstm_case
from tests.harness import assert_sound, bits, call, moved, turned
from tests.ops.test_lstm import lengths

pytest.importorskip("numba")


@st.composite
def cases(draw: st.DrawFn, variable: bool) -> Case:
    """Sizes around the tiles and vectors of the kernels."""
    steps, batch = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    return lstm_backward_case(
        steps=steps,
        batch=batch,
        input_size=draw(st.sampled_from([1, 3, 16, 33])),
        hidden_size=draw(st.sampled_from([1, 5, 16, 40, 67])),
        layers=draw(st.integers(1, 3)),
        bidirectional=draw(st.booleans()),
        has_bias=draw(st.booleans()),
        batch_first=draw(st.booleans()),
        lengths=draw(lengths(steps, batch)) if variable else None,
        dtype=draw(st.sampled_from([FLOAT32, FLOAT16])),
    )


def assert_all_sound(case: Case, filled: dict[str, Any]) -> None:
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@settings(max_examples=100)
@given(cases(variable=False), st.integers(1, 3), st.integers(0, 9))
def test_any_sizes(case: Case, threads: int, seed: int) -> None:
    filled = fill(case, seed)
    with aclnn.threads(threads):
        call(case, filled, engine="fast")
    assert_all_sound(case, filled)


@settings(max_examples=150)
@given(cases(variable=True), st.integers(0, 9))
def test_what_takes_no_part_is_not_read(case: Case, seed: int) -> None:
    filled, clean = fill(case, seed), fill(case, seed)
    active = case.data["batchSizesOptional"]
    for name in ("input", "dy", "i", "g", "f", "o", "h", "c", "tanhc"):
        for tensor in filled[name] if isinstance(filled[name], list) else [filled[name]]:
            batch_first = case.values["batchFirst"] and name in ("input", "dy")
            view = tensor.view.swapaxes(0, 1) if batch_first else tensor.view
            for t, count in enumerate(active):
                view[t, count:] = np.nan
    call(case, filled, engine="fast")
    call(case, clean, engine="reference")
    found, expected = views(filled, case.op), views(clean, case.op)
    for name in ("dxOut", "dhPrevOut", "dcPrevOut"):
        assert np.isfinite(found[name]).all(), name
        assert (found[name] == 0).sum() >= (expected[name] == 0).sum()
    assert all(np.isfinite(d).all() for d in found["dparamsOut"])
    for name in case.op.by_name:
        if not case.op.by_name[name].out:
            filled[name] = clean[name]
    assert_all_sound(case, filled)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_does_not_reach_what_takes_no_part(value: float) -> None:
    case = lstm_backward_case(4, 3, 20, 20, lengths=(4, 2, 0))
    filled = fill(case)
    for weight in filled["params"][:2]:
        weight.view[3, 3] = value
    call(case, filled, engine="fast")
    dx, dh = filled["dxOut"].view, filled["dhPrevOut"].view
    assert (dx[2:, 1] == 0).all()
    assert (dx[:, 2] == 0).all()
    assert (dh[0, 2] == filled["dh"].view[0, 2]).all()
    assert_all_sound(case, filled)


@pytest.mark.parametrize("name", ["input", "dy", "dh", "dc"])
def test_nan_reaches_what_depends_on_it(name: str) -> None:
    case = lstm_backward_case(4, 3, 20, 20, layers=2, bidirectional=True)
    filled = fill(case)
    filled[name].view[..., 1, 3] = np.nan
    call(case, filled, engine="fast")
    assert_all_sound(case, filled)


@pytest.mark.parametrize(
    "sizes",
    [
        {"steps": 40, "batch": 13, "input_size": 70, "hidden_size": 72},
        {"steps": 5, "batch": 3, "input_size": 5, "hidden_size": 80, "layers": 2, "bidirectional": True},
        {"steps": 9, "batch": 1, "input_size": 200, "hidden_size": 33, "layers": 3, "dtype": FLOAT16, "lengths": (4,)},
    ],
)
def test_more_rows_and_units_than_a_tile_has(sizes: Any) -> None:
    assert_sound(lstm_backward_case(**sizes), "fast")


@pytest.mark.parametrize(
    "names", [("dy",), ("i", "g", "f", "o", "c", "tanhc"), ("hx",), ("input", "h", "dxOut")], ids=len
)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
def test_features_that_do_not_lie_side_by_side(names: tuple[str, ...], dtype: DType) -> None:
    case = lstm_backward_case(3, 4, 5, 6, layers=2, bidirectional=True, lengths=(3, 3, 2, 0), dtype=dtype)
    assert_sound(turned(case, *names), "fast")


def test_more_sequences_than_65536() -> None:
    assert_sound(lstm_backward_case(2, 70_001, 3, 2), "fast")


def test_memory_that_does_not_begin_a_cache_line_gives_the_same_bits() -> None:
    case = lstm_backward_case(9, 4, 60, 32)
    filled, other = fill(case, 1), fill(case, 1)
    other["input"] = moved(other["input"].view, 4)
    other["params"] = [moved(p.view, 4) for p in other["params"]]
    call(case, filled, engine="fast")
    call(case, other, engine="fast")
    assert bits(case, filled) == bits(case, other)


def test_long_sequences_stay_within_the_bound() -> None:
    case = lstm_backward_case(steps=120, batch=2, input_size=8, hidden_size=48)
    filled = fill(case)
    call(case, filled, engine="fast")
    assert_all_sound(case, filled)


@pytest.mark.parametrize(
    "sizes",
    [
        {"steps": 70, "batch": 32, "input_size": 70, "hidden_size": 72},
        {"steps": 9, "batch": 1, "input_size": 33, "hidden_size": 210, "bidirectional": True},
        {"steps": 6, "batch": 7, "input_size": 40, "hidden_size": 100, "layers": 2, "dtype": FLOAT16},
    ],
)
def test_tiles_give_the_same_bits_on_any_number_of_threads(sizes: Any) -> None:
    case = lstm_backward_case(**sizes)
    seen = []
    for threads in (1, 2, 3, 7):
        filled = fill(case, 5)
        with aclnn.threads(threads):
            call(case, filled, engine="fast")
        seen.append(bits(case, filled))
    assert seen[1:] == seen[:1] * 3


def test_the_same_bits_when_fewer_take_part() -> None:
    """What the longest sequences get does not depend on those that ended: rows of a product are independent."""
    whole = lstm_backward_case(6, 9, 40, 70)
    some = lstm_backward_case(6, 9, 40, 70, lengths=(6, 6, 6, 6, 6, 3, 2, 1, 1))
    filled, other = fill(whole, 2), fill(some, 2)
    call(whole, filled, engine="fast")
    for arg in whole.op.inputs:
        if arg.name in other and arg.name != "batchSizesOptional":
            other[arg.name] = filled[arg.name]
    call(some, other, engine="fast")
    for name in ("dxOut", "dhPrevOut", "dcPrevOut"):
        assert (filled[name].view[:, :5] == other[name].view[:, :5]).all(), name


@pytest.mark.parametrize("make", [lstm_backward_case, lstm_case])
def test_sequences_that_part_get_the_same_bits(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lots of sequences on threads of their own, or all of them together on all threads."""
    plan_step, parted = matrix.step, set()

    def step(*planned: Any) -> matrix.StepLaunch:
        made = plan_step(*planned)
        parted.add(made.apart)
        return made

    monkeypatch.setattr(matrix, "PER_THREAD", 1)
    monkeypatch.setattr(matrix, "step", step)
    case, seen = make(5, 13, 20, 140), set()
    for least, threads in ((1, 1), (1, 2), (1, 3), (1, 7), (14, 3)):
        monkeypatch.setattr(matrix, "ROWS_APART", ((math.inf, least),))
        aclnn.cache_clear()
        filled = fill(case, 5)
        with aclnn.threads(threads):
            call(case, filled, engine="fast")
        seen.add(tuple(bits(case, filled)))
    aclnn.cache_clear()
    assert parted == {1, 2, 3, 7}
    assert len(seen) == 1
