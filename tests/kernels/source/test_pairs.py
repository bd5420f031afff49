"""Pairs of bfloat16: how pictures and weights become these, and what is made of them. The lower half comes first."""

from __future__ import annotations

import itertools
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16
from aclnn.base.taps import Window
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.cases import fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.convolution import direct, tiles
from aclnn.kernels.convolution.boxes import Picture, as_five, lay_out
from aclnn.kernels.convolution.shape import Shape
from aclnn.kernels.matmul.tiles import columns, even_chain, least_block, packed_columns
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import EVERY_POSITION, MOVES, PAIRED, POSITIONS
from aclnn.kernels.native.threads import Work
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import assert_sound, bits, call

needs_pairs = pytest.mark.skipif(not jit.vectors().pairs, reason="the processor has no AVX512-BF16, or may not use it")


def words(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return first.astype("u4") | (second.astype("u4") << np.uint32(16))


def padded(picture: np.ndarray, before: int, length: int) -> np.ndarray:
    """Rows of such a length of the picture, with as many zeros before it, and zeros behind."""
    wide = np.pad(picture, [*[(0, 0)] * (picture.ndim - 1), (before, length + before + 2)])
    return wide[..., :length]


def staged(
    picture: np.ndarray, paired: int, stride: int, reach: int, before: int, box: list[int], last: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What is made of the rows of [channel][position] that a box meets, and a model of it."""
    channels, size = picture.shape
    together = 1 if paired else 2
    count = -(-channels // together)
    length = {0: (box[1] - 1) * stride + reach + 1, POSITIONS: -(-box[1] // 2)}.get(
        paired, (box[1] + box[1] % 2 - 1) * stride + reach + 1
    )
    steps = tuple(s // 2 for s in picture.strides)
    laid = (0, 1, 0, 0, count + 3) if last else (0, length + 5, 0, 0, 1)
    table = [0, count, 1, 1, size, 0, steps[0], 0, 0, steps[1], 1, 1, stride, 0, 0, before, 0, 0, reach, *laid]
    table += [*[0] * 5, channels, paired]
    room = np.full((count + 3) * (length + 5), 0xDEADBEEF, "u4")
    numbers = [np.array(given, np.int64) for given in (table, [0, 0, 0, box[0], 1, 1, 1, box[1], *[-1] * 8])]
    arguments = [picture.ctypes.data, room.ctypes.data, *(given.ctypes.data for given in numbers), 0]
    Work(jit.load("staging_pairs.stage", "BPIIi"), count, count, arguments, 1).run()
    strides = (4 * laid[1], 4 * laid[4])
    made = np.lib.stride_tricks.as_strided(room, (count, length), strides)
    if paired == POSITIONS:
        own = picture[:, box[0] : box[0] + box[1]]
        rows = padded(own, 0, 2 * length)
        return made, words(rows[:, ::2], rows[:, 1::2])
    begin = box[0] * stride
    rows = padded(picture, before, begin + length + stride)[:, begin:]
    if paired == EVERY_POSITION:  # the last ones are met by the second of two positions alone
        return made[:, : length - stride], words(rows[:, : length - stride], rows[:, stride:length])
    even = np.concatenate([rows[:, :length], np.zeros((channels % 2, length), "u2")])
    return made, words(even[::2], even[1::2])


@needs_pairs
@given(
    st.sampled_from([0, EVERY_POSITION, POSITIONS]),
    st.integers(1, 70),  # channels
    st.integers(1, 70),  # positions of a box
    st.integers(1, 3),
    st.integers(0, 6),
    st.integers(0, 5),
    st.booleans(),
    st.sampled_from(["rows", "channels last", "spread", "backwards"]),
    st.integers(0, 3),
)
def test_boxes_become_pairs(
    paired: int,
    channels: int,
    count: int,
    stride: int,
    reach: int,
    before: int,
    last: bool,
    lies: str,
    begin: int,
) -> None:
    """Whatever is beyond the picture is not read: it would be NaN, or no memory at all."""
    if paired == POSITIONS:
        stride, reach, before = 1, 0, 0
    size = begin * stride + (count if paired == POSITIONS else max(1, (count - 1) * stride + reach + 1 - 2 * before))
    rng = np.random.default_rng(count)
    elements = rng.integers(1, 1 << 15, (channels, size)).astype("u2")
    picture = {
        "rows": elements,
        "channels last": np.ascontiguousarray(elements.T).T,
        "spread": np.repeat(elements, 2, axis=1)[:, ::2],
        "backwards": elements[:, ::-1].copy()[:, ::-1],
    }[lies]
    made, wanted = staged(picture, paired, stride, reach, before, [begin, count], last)
    np.testing.assert_array_equal(made, wanted)


@needs_pairs
@pytest.mark.parametrize(("outputs", "channels", "taps"), [(1, 3, 9), (37, 21, 9), (150, 16, 9), (64, 100, 1)], ids=str)
@pytest.mark.parametrize("side_by_side", [False, True], ids=["terms", "outputs"])
@pytest.mark.parametrize("bad", [1.0, np.inf, np.nan])
def test_weights_become_pairs(outputs: int, channels: int, taps: int, side_by_side: bool, bad: float) -> None:
    """Two channels are a pair; the last may have no partner. What is not finite is seen in either half."""
    rng, terms = np.random.default_rng(1), -(-channels // 2) * taps
    elements = rng.standard_normal((outputs, channels, taps)).astype(aclnn.bfloat16)
    for channel in {channels - 1, channels // 2}:
        elements[outputs // 2, channel, taps - 1] = bad
        weight = np.ascontiguousarray(elements.transpose(1, 2, 0)).transpose(2, 0, 1) if side_by_side else elements
        to_next, to_channel, to_tap = (s // 2 for s in weight.strides)
        c, t = (grid.ravel() for grid in np.meshgrid(np.arange(channels), np.arange(taps), indexing="ij"))
        places, rows = c * to_channel + t * to_tap, 2 * (c // 2 * taps + t) + c % 2
        order = np.argsort(places, kind="stable")
        given = np.concatenate([places[order], rows[order]])
        strides = np.array([0, to_next, 1, 0, places.size])
        packed, found = np.full(packed_columns(outputs) * terms, 0xDEADBEEF, "u4"), np.zeros(1, np.int64)
        arguments = [weight.ctypes.data, packed.ctypes.data, found.ctypes.data, outputs, terms]
        arguments += [given.ctypes.data, strides.ctypes.data, columns()]
        Work(jit.load("panels.pack_taps", "BPIiiIIi"), -(-outputs // columns()), 1, arguments, 2).run()
        whole = np.zeros((packed_columns(outputs), 2 * -(-channels // 2), taps), "u2")
        whole[:outputs, :channels] = weight.view("u2")
        pairs = words(whole[:, ::2], whole[:, 1::2]).reshape(len(whole), terms)
        wanted = [pairs[first : first + columns()].T.ravel() for first in range(0, len(whole), columns())]
        np.testing.assert_array_equal(packed, np.concatenate(wanted))
        assert found[0] == (not np.isfinite(bad))
        elements[outputs // 2, channel, taps - 1] = 1


def test_boxes_of_pairs_have_half_of_the_channels() -> None:
    shape = Shape(dense(BFLOAT16, (1, 7, 9, 9)), dense(BFLOAT16, (1, 4, 7, 7)), dense(BFLOAT16, (4, 7, 3, 3)), PLAIN, 1)
    (over,) = shape.passes(onto_wide=False)
    picture: Picture = as_five(shape.wide)
    one, two = (lay_out(picture, 7, over, (1, 1, 7, 7), True, together) for together in (1, 2))
    assert two.room * 7 == one.room * 4
    assert two.rows.shape == (4, 9)
    assert two.table[PAIRED] == 0
    assert two.table[MOVES:] != one.table[MOVES:]


PLAIN = Window((1, 1), (1, 1), (0, 0), (0, 0))


@pytest.mark.parametrize("length", [*range(1, 40), 64, 100, 513, 4608, 40_000])
def test_chains_of_pairs_keep_the_bound(length: int) -> None:
    """Equal terms err by a third of what is added one by one: both terms of a pair, in a chain, then chains."""
    for block in {length, max(1, length // 2), least_block(length, each=2)}:
        chain = even_chain(length, block, each=2)
        assert 1 <= chain <= block
        assert (2 * chain + length / chain) / 3 <= max(1, 8 + np.sqrt(2 * length))


CASES = [
    {"in_channels": 7, "out_channels": 70, "size": (9, 11), "padding": 1},
    {"in_channels": 40, "out_channels": 35, "size": (15, 15), "stride": 2, "padding": 1},
    {"in_channels": 24, "out_channels": 20, "size": (8, 21), "groups": 2, "dilation": 2, "padding": 2},
    {"in_channels": 18, "out_channels": 33, "size": (40,), "kernel": 5, "padding": 2},
    {"in_channels": 16, "out_channels": 12, "size": (4, 6, 7), "kernel": 2},
    {"in_channels": 34, "out_channels": 130, "size": (13, 13), "kernel": 1},
]


@needs_pairs
@pytest.mark.parametrize("attributes", CASES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_results_of_pairs(attributes: dict[str, object], transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are right, the same on any number of threads, and tiles do make them of pairs."""
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
    for make in (convolution_case, convolution_backward_case):
        case, found = make(**attributes, transposed=transposed, dtype=BFLOAT16, device=CPU), set()
        for threads in (1, 2, 3):
            aclnn.cache_clear()
            filled = fill(case, 5)
            with aclnn.threads(threads):
                call(case, filled, engine="fast")
            found.add(tuple(bits(case, filled)))
        assert len(found) == 1
        assert_sound(case, "fast")
    assert any(key.startswith("staging_pairs.stage") for key in jit._LOADED)


@needs_pairs
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["gradOutput", "input", "weight"])
@pytest.mark.parametrize("size", [6, 7])
def test_what_has_no_partner_spoils_nothing(
    name: str, value: float, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0·NaN is NaN: where rows or channels are odd, a pair has a zero on one side and perhaps that on the other."""
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
    aclnn.cache_clear()
    case = convolution_backward_case(in_channels=5, out_channels=6, size=size, padding=1, dtype=BFLOAT16, device=CPU)
    for place in itertools.product((0, -1), repeat=4):
        filled = fill(case, 3)
        filled[name].view[place] = value
        call(case, filled, engine="fast")
        reference = fill(case, 3)
        reference[name].view[place] = value
        call(case, reference, engine="numpy")
        for output in ("gradInput", "gradWeight", "gradBias"):
            made, wanted = (np.asarray(f[output].view, "f4") for f in (filled, reference))
            assert np.array_equal(np.isnan(made), np.isnan(wanted)), (output, place)


@needs_pairs
@pytest.mark.parametrize("weight", [(0, 1), (1, -6), (-12, 2), (2, 0)], ids=str)
def test_weights_in_any_order(weight: tuple[int, int]) -> None:
    """Channels that lie backwards, or at one place: the second of a pair is then not behind the first."""
    rng = np.random.default_rng(2)
    memory = rng.standard_normal(400).astype(aclnn.bfloat16)
    start = 200
    view = np.lib.stride_tricks.as_strided(memory[start:], (6, 7, 1, 1), (2 * weight[0], 2 * weight[1], 2, 2))
    x = rng.standard_normal((2, 7, 20, 20)).astype(aclnn.bfloat16)
    made = aclnn.convolution(x, view, None, 1, 0, 1, False, 0, 1, engine="fast")
    wanted = np.einsum("nchw,mc->nmhw", x.astype("f8"), view[:, :, 0, 0].astype("f8"))
    assert np.allclose(made.astype("f8"), wanted, rtol=2**-8, atol=1e-3)


def test_where_pairs_are_multiplied() -> None:
    spec: dict[str, TensorSpec] = {name: dense(BFLOAT16, (2, 2, 1, 1)) for name in ("wide", "narrow", "weight")}
    shape = Shape(**spec, window=PLAIN, groups=1, in_pairs=True)
    assert shape.pairs(shape.wide, shape.weight)
    assert not shape._replace(in_pairs=False).pairs(shape.wide, shape.weight)
    assert not shape.pairs(shape.wide, shape.weight._replace(dtype=aclnn.base.dtype.FLOAT16))
    assert tiles.stage_of(BFLOAT16) != 0


@needs_pairs
@pytest.mark.parametrize("exponents", [(-70, -42), (-71, -42), (-70, -43), (-133, 0), (0, -133), (-60, -64)], ids=str)
@pytest.mark.parametrize("taps", [1, 3])
def test_what_is_too_small_for_pairs_is_multiplied_as_floats(
    exponents: tuple[int, int], taps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms cancel, and each product or sum may be subnormal, which instructions for pairs take for 0."""
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
    aclnn.cache_clear()
    attributes = {"in_channels": 8, "out_channels": 6, "size": 9, "kernel": taps, "padding": taps // 2}
    for make in (convolution_case, convolution_backward_case):
        case = make(**attributes, dtype=BFLOAT16, device=CPU)
        filled, rng = fill(case), np.random.default_rng(7)
        for name, exponent in {"gradOutput": exponents[0], "input": exponents[1], "weight": exponents[1]}.items():
            if name in filled and filled[name] is not None:
                view = filled[name].view
                values = rng.integers(128, 256, view.shape) * rng.choice([-1.0, 1.0], view.shape)
                view[...] = np.ldexp(values, exponent - 7)
        call(case, filled, engine="fast")
        for output in judge(case.op, case.call, views(filled, case.op)):
            assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


def test_products_of_the_least_factors_are_whole_multiples_of_what_is_not_subnormal() -> None:
    pairs, behind_the_point, bias = import_module("aclnn.kernels.source.pairs"), 7, 127
    assert pairs.LEAST_OF_PRODUCTS - 2 * bias - 2 * behind_the_point == -126
    assert pairs.LEAST_OF_WEIGHTS + pairs.LEAST_OF_PICTURES == pairs.LEAST_OF_PRODUCTS


@needs_pairs
@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
@pytest.mark.parametrize("transposed", [False, True])
def test_pictures_become_one_row_where_nothing_else_is_met(last: bool, transposed: bool) -> None:
    """So they are brought as a whole; where rows do not follow each other they are not."""
    case = convolution_backward_case(
        in_channels=20, out_channels=35, size=(7, 5), kernel=1, transposed=transposed, dtype=BFLOAT16, device=CPU
    )
    names = ("input", "gradOutput") if not transposed else ("gradOutput", "input")
    wide, narrow = (case.call[name] for name in names)
    if last:
        wide, narrow = (t._replace(strides=(35 * t.shape[1], 1, 5 * t.shape[1], t.shape[1])) for t in (wide, narrow))
    shape = Shape(wide, narrow, case.call["weight"], PLAIN, 1, True)
    one = shape.in_one_row()
    assert one.wide.shape == (*wide.shape[:2], 35)
    assert one.wide.strides == (*wide.strides[:2], wide.strides[-1])
    assert one.weight.rank == len(one.window.stride) + 2 == 3
    for change in (
        {"wide": wide._replace(strides=(*wide.strides[:2], 2 * wide.strides[2], wide.strides[3]))},
        {"window": PLAIN._replace(padding_before=(0, 1))},
        {"window": PLAIN._replace(stride=(1, 2))},
        {"weight": dense(BFLOAT16, (*shape.weight.shape[:2], 1, 2))},
    ):
        kept = shape._replace(**change)
        assert kept.in_one_row() is kept
    assert_sound(case, "fast")
