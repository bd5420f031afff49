"""Convolution on tiles of our own: right at any shape, dtype, stride and value; the same bits for any threads."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.contract.cases import Case, fill
from aclnn.kernels.convolution import bfloat16_rule, direct, on_tiles, tiles
from aclnn.kernels.convolution.boxes import Pass
from aclnn.ops.convolution import convolution_backward, convolution_backward_case
from aclnn.ops.convolution_forward import convolution, convolution_case
from tests.harness import assert_sound, bits, call
from tests.kernels.cases import assert_green, executor
from tests.kernels.convolution.convolutions import SPECIAL, Fenced, assert_judged, served, shapes
from tests.ops import test_convolution_forward
from tests.strategies import strided

pytest.importorskip("numba")
CASES = [pytest.param(c, id=f"{i}-{c.note}") for i, c in enumerate(ops.cases(convolution_backward)) if served(c)]
FORWARD = [
    pytest.param(c, id=f"{i}-{c.note}")
    for i, c in enumerate(ops.cases(convolution))
    if all(not c.values[n].is_empty and c.values[n].dtype.name != "float64" for n in ("input", "weight", "output"))
]


@pytest.fixture(autouse=True)
def always_tiles() -> Iterator[None]:
    """Whatever else is faster, tiles serve."""
    aclnn.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bfloat16_rule, "is_ahead", lambda call: None)
        yield
    aclnn.cache_clear()


@pytest.mark.parametrize("case", [*CASES, *FORWARD])
def test_every_case(case: Case) -> None:
    assert_sound(case, "fast")


@settings(max_examples=150)
@given(shapes(), st.integers(1, 3), st.integers(0, 99), st.lists(st.sampled_from(SPECIAL)))
def test_any_shape_with_any_value(case: Case, threads: int, seed: int, specials: list[float]) -> None:
    assume(served(case))
    filled, rng = fill(case, seed), np.random.default_rng(seed)
    for value in specials[:4]:
        view = filled[("gradOutput", "input", "weight")[rng.integers(3)]].view
        view[tuple(rng.choice([0, n - 1, rng.integers(n)]) for n in view.shape)] = value  # corners meet padding
    with aclnn.threads(threads):
        call(case, filled, engine="fast")
    assert_judged(case, filled)


@settings(max_examples=100)
@given(st.data())
def test_any_convolution_forwards_or_backwards_through_any_strides(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([FLOAT32, BFLOAT16]))
    case = data.draw(st.one_of(shapes(), test_convolution_forward.cases(dtype=dtype)))
    specs = [v for v in case.values.values() if isinstance(v, TensorSpec)]
    assume(not any(s.is_empty for s in specs))
    assume(any(case.values.get("outputMask", (True,))))
    assert_sound(data.draw(st.one_of(st.just(case), strided(case))), "fast")


@settings(max_examples=60)
@given(
    rows=st.one_of(st.integers(1, 20), st.sampled_from([31, 64, 150, 301])),
    depth=st.one_of(st.integers(1, 20), st.sampled_from([31, 63, 65, 255, 257, 500, 1100])),
    columns=st.one_of(st.integers(1, 70), st.sampled_from([127, 129, 300])),
    threads=st.integers(1, 3),
)
def test_matrix_products_of_any_size(rows: int, depth: int, columns: int, threads: int) -> None:
    case = convolution_case(
        batch=1, in_channels=depth, out_channels=rows, size=(columns,), kernel=1, padding=0, device=CPU
    )
    with aclnn.threads(threads):
        assert_sound(case, "fast")


BLOCKS = [
    {"in_channels": 3, "out_channels": 20, "size": (31, 30), "kernel": 7, "stride": 2, "padding": 3},
    {"in_channels": 1, "out_channels": 12, "size": (23, 26), "kernel": 5, "padding": 2},
    {"in_channels": 3, "out_channels": 24, "size": (34, 33), "kernel": 8, "stride": 8},
    {"in_channels": 2, "out_channels": 9, "size": (203,), "kernel": 7, "padding": 3, "dilation": 2},
    {"in_channels": 6, "out_channels": 8, "size": (20, 21), "kernel": 3, "padding": 1, "groups": 2},
    {"in_channels": 20, "out_channels": 2, "size": (9, 11), "kernel": 4, "stride": 3, "padding": 1, "transposed": True},
    {"in_channels": 2, "out_channels": 20, "size": (5, 9, 10), "kernel": 3, "padding": 1},
]
"""Results of few channels: their positions are joined to blocks, with some left over."""


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
@pytest.mark.parametrize("attributes", BLOCKS, ids=lambda a: f"{len(a['size'])}-D kernel {a['kernel']}")
def test_positions_joined_to_blocks(
    attributes: dict[str, Any], value: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With NaN and Inf where a tap is that a neighbour in the block does not meet."""
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
    monkeypatch.setattr(tiles, "_cost", lambda overs, *given: -max(over.block for over in overs))  # they always pay
    backward = convolution_backward_case(batch=2, device=CPU, **attributes)
    forward = convolution_case(batch=2, device=CPU, **attributes)
    assert any(over.block > 1 for case in (backward, forward) for over in _passes_of(case))
    for case, picture in ((backward, "gradOutput"), (forward, "input")):
        for name in ("weight", picture):
            filled = fill(case, 7)
            if value is not None:
                filled[name].view[tuple(n // 2 for n in filled[name].view.shape)] = value
            call(case, filled, engine="fast")
            assert_judged(case, filled)


def _passes_of(case: Case) -> list[Pass]:
    """Those of a result that is made from a picture."""
    planned: list[list[Pass]] = []
    with pytest.MonkeyPatch.context() as patch:
        choose = tiles.cheapest_passes
        patch.setattr(tiles, "cheapest_passes", lambda *given: planned.append(choose(*given)) or planned[-1])
        aclnn.cache_clear()
        call(case, fill(case), engine="fast")
    return planned[0]


@pytest.mark.parametrize("width", range(1, 36))
def test_padded_rows_of_any_width(width: int) -> None:
    """Narrower than a vector, as wide, and wider."""
    case = convolution_backward_case(batch=1, in_channels=3, out_channels=40, size=(3, width), padding=1, device=CPU)
    assert_sound(case, "fast")


@pytest.mark.parametrize("value", [1.1, 0.7, 1 / 3, 0.1, 3.3])
def test_equal_terms_are_within_the_bound(value: float) -> None:
    case = convolution_backward_case(batch=3, in_channels=16, out_channels=16, size=40, padding=1)
    filled = fill(case)
    for name, number in (("gradOutput", 0.7), ("input", value), ("weight", 1.0 if value == 1.1 else value)):
        filled[name].view[...] = number
    call(case, filled, engine="fast")
    assert_judged(case, filled)


@pytest.mark.parametrize("value", [1.1745, 1.6369617])
@pytest.mark.parametrize(
    "attributes",
    [
        {"in_channels": 4096, "out_channels": 20, "size": (4, 4, 4), "kernel": 3, "padding": 1},
        {"in_channels": 1024, "out_channels": 1, "size": (64, 64), "kernel": 5, "padding": 2, "stride": 2},  # joined
    ],
    ids=["many terms", "many zeros"],
)
def test_equal_terms_of_many_channels_and_taps_are_within_the_bound(attributes: dict[str, Any], value: float) -> None:
    """In short blocks, whose sums would be added one by one too often."""
    case = convolution_case(batch=1, device=CPU, **attributes)
    filled = fill(case)
    for name, number in (("input", value), ("weight", 1.0), ("bias", 0.0)):
        if name in filled:
            filled[name].view[...] = number
    call(case, filled, engine="fast")
    assert_judged(case, filled)


@pytest.mark.long
@pytest.mark.parametrize("value", [1.1, 0.7, 1 / 3])
def test_ten_million_equal_terms_are_within_the_bound(value: float) -> None:
    case = convolution_backward_case(batch=1, in_channels=1, out_channels=1, size=(10_000_000,), kernel=3, padding=1)
    filled = fill(case)
    for name in ("gradOutput", "input", "weight"):
        filled[name].view[...] = value
    call(case, filled, engine="fast")
    assert_judged(case, filled)


def test_few_terms_that_are_equal_in_part_are_within_the_bound() -> None:
    """16 ones, and 16 times a little more than half a unit in the last place of their sum: one by one, each of these
    would add a whole unit."""
    ones, little = np.ones((1, 16, 16), np.float32), np.float32(2.0**-20 * 1.001)
    x, w = np.concatenate([ones, little * ones]), np.ones((16, 16, 1), np.float32)
    _, made, _ = aclnn.convolution_backward(
        np.ones_like(x), x, w, [16], 1, 0, 1, False, 0, 1, [True] * 3, engine="fast"
    )
    exact = 16 + 16 * float(little)
    assert np.abs(made - exact).max() <= (8 + 32**0.5) * 2.0**-24 * exact


@pytest.mark.parametrize("channels", [(300, 300), (16, 40), (5, 300)])
def test_what_lies_between_the_elements_of_a_weight_is_no_part_of_it(channels: tuple[int, int]) -> None:
    """Every row of the weight ends with a NaN that is not its own; else another kernel would serve, with other bits."""
    wide = np.full((*channels, 3, 4), np.nan, np.float32)
    wide[..., :3] = np.random.default_rng(0).standard_normal((*channels, 3, 3), dtype=np.float32)
    x = np.random.default_rng(1).standard_normal((1, channels[1], 9, 9), dtype=np.float32)
    made, expected = (
        aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, engine="fast")
        for w in (wide[..., :3], wide[..., :3].copy())
    )
    assert np.array_equal(made, expected)


@pytest.mark.parametrize("where", [0, 3, -1])
@pytest.mark.parametrize("channels", [(300, 300), (16, 40), (5, 300), (4, 3)])
def test_a_weight_that_is_not_finite_is_found(channels: tuple[int, int], where: int) -> None:
    """Padding is multiplied as zeros: wherever a NaN lies in a weight, no position may have it that meets padding."""
    w = np.random.default_rng(0).standard_normal((*channels, 3, 3), dtype=np.float32)
    w.reshape(-1)[where] = np.inf
    x = np.ones((1, channels[1], 5, 5), np.float32)
    made = aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, engine="fast")
    assert not np.isnan(made).any()
    assert np.isinf(made).any()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
def test_same_bits_on_any_number_of_threads(dtype: DType, transposed: bool) -> None:
    case = convolution_backward_case(
        batch=5,
        in_channels=20,
        out_channels=34,
        size=(29, 31),
        padding=1,
        stride=(2, 1),
        transposed=transposed,
        dtype=dtype,
    )
    found = set()
    for threads in (1, 2, 3, 7):
        filled = fill(case, 5)
        with aclnn.threads(threads):
            call(case, filled, engine="fast")
        found.add(tuple(bits(case, filled)))
    assert len(found) == 1


@pytest.mark.parametrize("groups", [1, 2])
def test_channels_last_and_steps_in_memory(groups: int) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((2, 9, 11, 24)).astype("f4"), rng.standard_normal((20, 3, 3, 24 // groups)).astype("f4")
    g = rng.standard_normal((2, 9, 22, 20)).astype("f4")[:, :, ::2]
    last = tuple(np.moveaxis(a, -1, 1) for a in (g, x, w))
    arguments = (None, 1, 1, 1, False, 0, groups, (True, True, False))
    found = aclnn.convolution_backward(*last, *arguments, engine="fast")
    expected = aclnn.convolution_backward(*map(np.ascontiguousarray, last), *arguments, engine="numpy")
    for one, other in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [(7, 7), (9, 10), (1, 31), (40,), (5, 1)], ids=str)
@pytest.mark.parametrize(("kernel", "padding"), [(1, 0), (3, 0), (3, 1)])
def test_nothing_is_read_behind_a_tensor(size: tuple[int, ...], kernel: int, padding: int) -> None:
    """Tensors that end where no memory is: one step further ends the process."""
    taps = tuple(min(kernel, n) for n in size)
    pads = tuple(min(padding, t - 1) for t in taps)
    outputs = tuple(n + 2 * p - t + 1 for n, p, t in zip(size, pads, taps, strict=True))
    shapes = (3, 17, *outputs), (3, 10, *size), (17, 10, *taps)
    rng = np.random.default_rng(1)
    fenced = [Fenced(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]
    arguments = (None, 1, pads, 1, False, 0, 1, (True, True, False))
    found = aclnn.convolution_backward(*(f.array for f in fenced), *arguments, engine="fast")
    expected = aclnn.convolution_backward(*(f.array for f in fenced), *arguments, engine="numpy")
    for one, other in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "length", "kernel"), [(2, 2**20, 5), (1, 2**24, 3)])
def test_long_rows_are_planned_in_little_memory(
    channels: int, length: int, kernel: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
    aclnn.cache_clear()
    x = np.broadcast_to(np.float32(1), (1, channels, length))
    w = np.ones((channels, channels, kernel), np.float32)
    arguments = (None, 1, kernel // 2, 1, False, 0, 1, (True, True, False))
    plan = aclnn.convolution_backward.plan(x, x, w, *arguments, engine="fast")
    assert plan.kernel == "tiles"
    assert plan.workspace_size < x.size  # a quarter of one tensor
    aclnn.cache_clear()


def test_taps_that_are_far_apart_are_left_to_others() -> None:
    """Where others may be asked: a box of the picture is copied with all that lies between."""
    case = convolution_backward_case(
        batch=1, in_channels=20, out_channels=20, size=(2000,), kernel=3, dilation=700, padding=700, device=CPU
    )
    assert executor(case, fill(case), "auto").kernel == "numpy"
    assert executor(case, fill(case), "fast").kernel == "tiles"
    assert_sound(case, "fast")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"stride": (63, 63)}, None),
        (
            {"stride": (33, 33), "weight": dense(FLOAT32, (32, 32, 40, 40))},
            "its strides take 1089 passes, more than 1024",
        ),
    ],
    ids=["plain", "taps far from each other", "many passes"],
)
def test_what_is_beyond_boxes_and_sums(changes: dict[str, Any], reason: str | None) -> None:
    wanted = convolution_backward_case(batch=2, in_channels=32, out_channels=32, size=28, padding=1)
    assert on_tiles.too_far(Call({**wanted.values, **changes}, wanted.device)) == reason


def test_nothing_is_needed_but_native_code() -> None:
    text = """
import numpy as np, aclnn
x, w = np.ones((2, 32, 20, 20), np.float32), np.ones((32, 32, 3, 3), np.float32)
plan = aclnn.convolution_backward.plan(x, x, w, None, 1, 1, 1, False, 0, 1, (True, True, False))
assert plan.kernel == "tiles", plan.refused
"""
    environment = {**os.environ, "ACLNN_ONEDNN": "/nowhere/libdnnl.so.3"}
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels of x86-64")
@pytest.mark.long
@pytest.mark.parametrize("level", ["sse41", "avx2", "avx512", "native"])
def test_every_instruction_set(level: str) -> None:
    assert_green(__file__, level)
