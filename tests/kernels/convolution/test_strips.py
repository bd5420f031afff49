"""Results of few channels in strips of positions: the sums of tiles, however positions lie, and where it pays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.contract.cases import Case, fill
from aclnn.kernels.convolution import bfloat16_rule, direct, padding, strips, tiles
from aclnn.kernels.convolution.boxes import Pass, as_five
from aclnn.kernels.convolution.padding import Order
from aclnn.kernels.native import jit
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import assert_sound, bits, call
from tests.kernels.convolution.convolutions import SPECIAL, Fenced, assert_judged, served, shapes
from tests.ops import test_convolution_forward
from tests.strategies import strided

pytest.importorskip("numba")
COST = strips.cost
REAL = {name: getattr(strips, name) for name in ("cost", "FEW_TERMS", "LEAST_FILLED", "LEAST_ROW")}
LANES, COLUMNS = jit.vectors().lanes, tiles.columns()


@pytest.fixture(autouse=True)
def wherever_they_can() -> Iterator[None]:
    """Strips cost nothing here, and nobody else serves."""
    aclnn.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bfloat16_rule, "is_ahead", lambda call: None)
        patch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
        patch.setattr(strips, "cost", lambda *given: 0.0 if math.isfinite(COST(*given)) else math.inf)
        for name, value in (("FEW_TERMS", 1), ("LEAST_FILLED", 0.01), ("LEAST_ROW", 0)):
            patch.setattr(strips, name, value)
        yield
    aclnn.cache_clear()


def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips serve where they are said to pay."""
    for name, value in REAL.items():
        monkeypatch.setattr(strips, name, value)


def planned(case: Case) -> list[Order]:
    """How the sums of a call are made."""
    found: list[Order] = []
    with pytest.MonkeyPatch.context() as patch:
        order = tiles.DataPlan._order
        patch.setattr(tiles.DataPlan, "_order", lambda *given: found.append(order(*given)) or found[-1])
        aclnn.cache_clear()
        call(case, fill(case), engine="fast")
    return found


def on_tiles(plan: tiles.DataPlan, over: Pass) -> Order:
    """The same sums as in strips."""
    sizes = as_five(plan._source).sizes
    return padding.order_of(over, sizes, plan._inputs, in_strips=True)._replace(in_strips=False)


SHAPES: list[dict[str, Any]] = [
    {"batch": 2, "in_channels": 20, "size": (13, 17), "kernel": 3, "padding": 1},
    {"batch": 3, "in_channels": 70, "size": (9, 8), "kernel": (1, 5), "padding": (0, 2)},
    {"batch": 1, "in_channels": 300, "size": (6, 5, 7), "kernel": 3, "padding": 1},
    {"batch": 2, "in_channels": 40, "size": (31, 70), "kernel": 1, "padding": 0},
    {"batch": 1, "in_channels": 33, "size": (500,), "kernel": 9, "padding": 4, "dilation": 2},
    {"batch": 5, "in_channels": 64, "size": (4, 4), "kernel": 3, "padding": 1},
    {"batch": 1, "in_channels": 30, "size": (4, 5), "kernel": 1, "padding": 0},
    {"batch": 2, "in_channels": 24, "size": (12, 14), "kernel": 3, "padding": 2, "groups": 2},
]


@pytest.mark.parametrize("attributes", SHAPES, ids=str)
@pytest.mark.parametrize(
    "channels", sorted({1, 2, 5, LANES - 1, LANES, LANES + 2, COLUMNS - LANES, COLUMNS - 3, COLUMNS})
)
def test_the_bits_are_those_of_tiles(
    attributes: dict[str, Any], channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = convolution_case(out_channels=channels * attributes.get("groups", 1), device=CPU, **attributes)
    assert all(order.in_strips for order in planned(case))
    found = set()
    for make in (tiles.DataPlan._order, on_tiles):
        monkeypatch.setattr(tiles.DataPlan, "_order", make)
        for threads in (1, 2, 3, 7):
            aclnn.cache_clear()
            with aclnn.threads(threads):
                filled = fill(case, 1)
                call(case, filled, engine="fast")
                found.add(b"".join(bits(case, filled)))
    assert len(found) == 1
    assert_judged(case, filled)


@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much])
@given(shapes(), st.sampled_from([1, 2, 3]), st.integers(0, 2**31), st.lists(st.sampled_from(SPECIAL), max_size=3))
def test_any_gradient_with_any_value(case: Case, threads: int, seed: int, specials: list[float]) -> None:
    assume(served(case))
    filled, rng = fill(case, seed), np.random.default_rng(seed)
    for value in specials:
        view = filled[("gradOutput", "weight")[rng.integers(2)]].view
        view[tuple(rng.choice([0, n - 1, rng.integers(n)]) for n in view.shape)] = value
    with aclnn.threads(threads):
        call(case, filled, engine="fast")
    assert_judged(case, filled)


@settings(max_examples=100)
@given(st.data())
def test_any_result_through_any_strides(data: st.DataObject) -> None:
    """Also of views with what is not theirs between two rows, which a strip goes over."""
    dtype = data.draw(st.sampled_from([FLOAT32, FLOAT32, FLOAT16, BFLOAT16]))
    case = data.draw(test_convolution_forward.cases(dtype=dtype))
    assume(not any(case.values[n].is_empty for n in ("input", "weight", "output")))
    assert_sound(data.draw(st.one_of(st.just(case), strided(case))), "fast")


def test_what_lies_between_rows_is_not_taken() -> None:
    x = np.full((2, 24, 20, 30), np.nan, np.float32)[..., :25]
    x[...] = np.random.default_rng(0).standard_normal(x.shape)
    w = np.random.default_rng(1).standard_normal((7, 24, 1, 1)).astype(np.float32)
    made, of_copy = (
        aclnn.convolution(given, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, engine="fast")
        for given in (x, x.copy())
    )
    assert np.isfinite(np.asarray(made)).all()
    assert np.array_equal(np.asarray(made), np.asarray(of_copy))


@pytest.mark.parametrize("size", [(1, 16), (3, 5), (7, 41), (90, 3)])
def test_no_strip_goes_beyond_a_picture(size: tuple[int, int]) -> None:
    case = convolution_case(
        batch=1, in_channels=40, out_channels=6, size=size, kernel=1, padding=0, has_bias=False, device=CPU
    )
    filled = fill(case)
    x, w = (Fenced(filled[name].view) for name in ("input", "weight"))
    given = (x.array, w.array, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    filled["output"].view[...] = aclnn.convolution(*given, engine="fast")
    assert_judged(case, filled)


def test_a_picture_that_is_repeated() -> None:
    """Many positions at one place."""
    row = np.random.default_rng(0).standard_normal((1, 16, 1, 40)).astype(np.float32)
    x = np.broadcast_to(row, (3, 16, 30, 40))
    w = np.random.default_rng(1).standard_normal((6, 16, 1, 1)).astype(np.float32)
    made = aclnn.convolution(x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, engine="fast")
    alone = aclnn.convolution(row, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, engine="fast")
    assert np.array_equal(np.asarray(made), np.broadcast_to(np.asarray(alone), (3, 6, 30, 40)))


@pytest.mark.parametrize(
    ("change", "pays"),
    [
        ({"out_channels": 6}, True),
        ({"out_channels": LANES}, True),
        ({"out_channels": COLUMNS}, False),  # tiles waste nothing
        ({"out_channels": COLUMNS, "kernel": 1, "padding": 0}, False),
        ({"out_channels": 6, "in_channels": 3}, False),  # few terms
        ({"out_channels": LANES, "size": (40, LANES // 2 - 1)}, False),  # few neighbours in a run
        ({"out_channels": COLUMNS + 2}, False),  # two panels
        ({"out_channels": 6, "stride": 2}, False),
        ({"out_channels": LANES, "size": (5, 5)}, False),  # most of a strip would lie between rows
    ],
    ids=str,
)
def test_where_strips_pay(change: dict[str, Any], pays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    as_it_is(monkeypatch)
    attributes: dict[str, Any] = {"batch": 2, "in_channels": 64, "size": (40, 40), "kernel": 3, "padding": 1, **change}
    assert [order.in_strips for order in planned(convolution_case(device=CPU, **attributes))] == [pays]


def test_gradients_are_made_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    as_it_is(monkeypatch)
    case = convolution_backward_case(
        batch=2, in_channels=6, out_channels=64, size=40, kernel=3, padding=1, output_mask=(True, False, False)
    )
    assert [order.in_strips for order in planned(case)] == [True]
