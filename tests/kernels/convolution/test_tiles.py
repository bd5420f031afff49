"""How a pass on tiles is divided between threads: packed weights, and shares of the work."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.base.device import CPU
from aclnn.contract.cases import fill
from aclnn.kernels.convolution import direct, fast, packing, strips, tiles
from aclnn.kernels.convolution.call import window_of
from aclnn.kernels.convolution.shape import Shape
from aclnn.kernels.native import launch_sequence
from aclnn.kernels.native import threads as threads_module
from aclnn.kernels.shared.workspace import LINE_ELEMENTS
from aclnn.ops.convolution_forward import convolution_case
from tests.harness import bits, call
from tests.kernels.convolution.convolutions import assert_judged

pytest.importorskip("numba")


@pytest.mark.parametrize("outputs", [150, 160, 40])
@pytest.mark.parametrize("groups", [1, 3])
def test_weights_are_packed_in_strips_that_threads_share(
    outputs: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panels of 64 columns, three for 160 channels, would leave most of it to one of two threads."""
    monkeypatch.setattr(packing, "PER_THREAD", 1)
    monkeypatch.setattr(packing, "FAR_WEIGHTS", 0)
    case = convolution_case(
        in_channels=18 * groups, out_channels=outputs * groups, size=(6, 7), kernel=(3, 3), groups=groups, device=CPU
    )
    found = set()
    for threads in (1, 2, 3):
        aclnn.cache_clear()
        filled = fill(case, 5)
        with aclnn.threads(threads):
            call(case, filled, engine="fast")
        assert_judged(case, filled)
        found.add(tuple(bits(case, filled)))
    assert len(found) == 1


@pytest.mark.parametrize("width", [1, 3, 64, 160, 512])
@pytest.mark.parametrize("groups", [1, 5])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_strips_are_whole_lines_or_panels(width: int, groups: int, threads: int) -> None:
    strip = packing.strip_for(width, groups, threads)
    assert tiles.columns() % strip == 0
    assert strip == tiles.columns() or (strip % LINE_ELEMENTS == 0 and tiles.panels_of(width) * groups % threads)


@pytest.mark.parametrize("near", [0, 1 << 40])
@pytest.mark.parametrize("has_openmp", [True, False])
def test_shares_of_the_work_are_taken_anew_in_every_run(
    has_openmp: bool, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "NEAR_ELEMENTS", near)
    if not has_openmp:
        for module in (threads_module, launch_sequence):
            monkeypatch.setattr(module, "runtime", lambda: None)
    aclnn.cache_clear()
    rng = np.random.default_rng(4)
    x, w, g = (rng.standard_normal(s).astype("f4") for s in ((6, 20, 30, 30), (24, 20, 3, 3), (6, 24, 30, 30)))
    outs = tuple(np.empty(shape, np.float32) for shape in (x.shape, w.shape, (24,)))
    with aclnn.threads(3):
        given_ = (g, x, w, [24], 1, 1, 1, False, 0, 1, (True, True, True))
        plan = aclnn.convolution_backward.plan(*given_, out=outs, engine="fast", repeatable=True)
        room, found = np.empty(plan.workspace_size, np.uint8), set()
        for _ in range(5):
            for out in outs:
                out[...] = np.nan
            plan.run(room)
            found.add(tuple(out.tobytes() for out in outs))
    aclnn.cache_clear()
    assert len(found) == 1
    assert not any(np.isnan(out).any() for out in outs)


@pytest.mark.parametrize("far", [0, 1 << 40], ids=["one for all", "copies"])
@pytest.mark.parametrize(
    ("w", "transposed", "groups"),
    [((40, 24, 3, 3), False, 1), ((40, 12, 3, 3), False, 2), ((24, 3, 3, 3), False, 1), ((24, 20, 4, 4), True, 2)],
    ids=["plain", "groups", "blocks", "passes"],
)
def test_threads_with_copies_of_the_weight(
    w: tuple[int, ...], transposed: bool, groups: int, far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every lot finds all of the weight, wherever it was packed; threads beyond the copies share one."""
    monkeypatch.setattr(packing, "FAR_WEIGHTS", far)
    monkeypatch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
    rng, found = np.random.default_rng(5), set()
    channels = w[0] if transposed else w[1] * groups
    x, weight = (rng.standard_normal(s).astype("f4") for s in ((9, channels, 18, 18), w))
    arguments = (None, 2 if transposed else 1, 1, 1, transposed, 0, groups)
    expected = aclnn.convolution(x, weight, *arguments, engine="numpy")
    for threads in (1, 2, 3, packing.MOST_COPIES + 1):
        aclnn.cache_clear()
        with aclnn.threads(threads):
            out = aclnn.convolution(x, weight, *arguments, engine="fast")
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
        found.add(out.tobytes())
    aclnn.cache_clear()
    assert len(found) == 1


@pytest.mark.parametrize("panels", [1, 1 << 40], ids=["packed", "in place"])
@pytest.mark.parametrize("size", [9, 21])
def test_pictures_of_many_channels_are_packed_or_not(panels: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether tiles are packed before they meet the panels does not matter to what is made."""
    monkeypatch.setattr(tiles, "MANY_PANELS", panels)
    monkeypatch.setattr(tiles, "FIRST_CACHE_ELEMENTS", 1 << 40)
    case = convolution_case(
        batch=3, in_channels=256, out_channels=3 * tiles.columns() + 5, size=(size, size), kernel=(3, 3), padding=1
    )
    found = set()
    for threads in (1, 2, 3):
        aclnn.cache_clear()
        filled = fill(case, 6)
        with aclnn.threads(threads):
            call(case, filled, engine="fast")
        assert_judged(case, filled)
        found.add(tuple(bits(case, filled)))
    aclnn.cache_clear()
    assert len(found) == 1


@pytest.mark.parametrize("far", [0, 1 << 40], ids=["past the caches", "near"])
def test_results_past_the_caches_are_the_same(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "FAR_ELEMENTS", far)
    rng = np.random.default_rng(8)
    x, w, bias = (rng.integers(-4, 5, s).astype("f4") for s in ((2, 40, 20, 24), (70, 40, 3, 3), (70,)))
    expected = aclnn.convolution(x, w, bias, 1, 1, 1, False, 0, 1, engine="numpy")
    for begin, threads in ((0, 1), (1, 2), (5, 3)):
        aclnn.cache_clear()
        out = np.empty(expected.size + begin, np.float32)[begin:].reshape(expected.shape)
        with aclnn.threads(threads):
            aclnn.convolution(x, w, bias, 1, 1, 1, False, 0, 1, engine="fast", out=out)
        np.testing.assert_array_equal(out, expected)
    aclnn.cache_clear()


def test_the_more_pictures_the_larger_blocks_of_positions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block has a weight of its own. Of one picture of 14×14 and 7×7 taps it took 25 times as long to make that as
    to multiply."""
    monkeypatch.setattr(strips, "cost", lambda *given: math.inf)
    largest = []
    for pictures in (1, 8, 64, 400):
        case = convolution_case(batch=pictures, in_channels=128, out_channels=5, size=14, kernel=7, padding=3)
        shape = Shape(*(case.call[n] for n in ("input", "output", "weight")), window_of(case.call), groups=1)
        overs = tiles.cheapest_passes(shape, onto_wide=False, channels=5)
        assert sum(over.block * len(over.shifts) for over in overs) <= pictures * 14 * 14 * 7 * 7 / 10
        largest.append(max(over.block for over in overs))
    assert sorted(largest) == largest
    assert len(set(largest)) > 1


@pytest.mark.parametrize(
    ("change", "in_strips", "how"),
    [
        ({}, False, "put_far"),
        ({"size": (258, 256)}, False, "put_far"),
        ({"size": (255, 255)}, False, "put"),  # channels do not begin with lines
        ({"size": (64, 64)}, False, "put"),  # a cache has it
        ({"in_channels": 16}, False, "put"),  # short sums
        ({"in_channels": 128, "transposed": True, "stride": 2}, False, "put_apart"),  # every other element of a row
        ({}, True, "put"),
    ],
    ids=str,
)
def test_only_whole_lines_are_written_past_the_caches(
    change: dict[str, Any], in_strips: bool, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, put_of = set(), tiles.put_of
    monkeypatch.setattr(tiles, "put_of", lambda dtype, how: found.add(how) or put_of(dtype, how))
    monkeypatch.setattr(strips, "cost", lambda *given: 0.0 if in_strips else math.inf)
    attributes = {"batch": 1, "in_channels": 64, "out_channels": 20, "size": (256, 256), "kernel": 3, "padding": 1}
    fast.convolution_on_tiles(convolution_case(device=CPU, **{**attributes, **change}).call, 2)
    assert found == {how}


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_what_lies_between_the_elements_of_a_result_is_not_touched(dtype: str) -> None:
    """It may be another thread's: here pictures of a batch lie one in the gaps of the other, and each has a thread."""
    images, channels, outputs, length = 2, 12, 129, 218
    x, weight = np.ones((images, channels, length), dtype), np.ones((outputs, channels, 1), dtype)
    memory = np.empty(images * outputs * length, dtype)
    strides = tuple(memory.itemsize * step for step in (1, 2 * length, 2))
    out = np.lib.stride_tricks.as_strided(memory, (images, outputs, length), strides)
    with aclnn.threads(2):
        for _ in range(100):
            memory[:] = np.nan
            aclnn.convolution(x, weight, None, 1, 0, 1, False, 0, 1, out=out, engine="fast")
            assert (memory == channels).all()
