"""The convolution over time on oneDNN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.contract.cases import fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.conv_tbc import conv_tbc_backward_case
from tests.harness import assert_sound, bits, call, moved

pytest.importorskip("numba")


@settings(max_examples=200)
@given(
    time=st.integers(1, 30),
    batch=st.integers(1, 5),
    in_channels=st.sampled_from([1, 3, 16, 33, 60]),
    out_channels=st.sampled_from([1, 4, 16, 40]),
    kernel=st.integers(1, 5),
    pad=st.integers(0, 4),
    dtype=st.sampled_from([FLOAT32, FLOAT16, BFLOAT16]),
    threads=st.integers(1, 3),
    specials=st.lists(st.sampled_from([np.nan, np.inf, -np.inf])),
)
def test_any_sizes_and_values(specials: list[float], threads: int, **sizes: int) -> None:
    assume(sizes["time"] + 2 * sizes["pad"] >= sizes["kernel"])
    case = conv_tbc_backward_case(**sizes)  # type: ignore[arg-type]
    filled, rng = fill(case), np.random.default_rng(len(specials))
    for value in specials[:3]:
        view = filled[("self", "input", "weight")[rng.integers(3)]].view
        view[tuple(rng.choice([0, n - 1]) for n in view.shape)] = value  # ends meet padding
    with aclnn.threads(threads):
        call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("sizes", [(150, 4, 24, 40, 3, 1), (70, 9, 300, 33, 4, 2), (400, 1, 15, 15, 1, 0)])
def test_sizes_around_those_of_tiles(sizes: tuple[int, ...]) -> None:
    assert_sound(conv_tbc_backward_case(*sizes), "fast")


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 16, 33, 64, 65])
@pytest.mark.parametrize("time", [1, 63, 64, 65, 2100])
def test_sums_of_short_rows_miss_none_and_take_none_twice(time: int, channels: int) -> None:
    case = conv_tbc_backward_case(time, 1, 1, channels, 1, 0)
    filled = fill(case)
    filled["self"].view[:] = np.arange(1, 1 + time * channels).reshape(time, 1, channels) % 7  # sums are exact
    call(case, filled, engine="fast")
    assert (filled["gradBias"].view == filled["self"].view.sum((0, 1))).all()


@pytest.mark.parametrize("shift", [0, 4])
def test_memory_that_does_not_begin_a_cache_line_gives_the_same_bits(shift: int) -> None:
    case = conv_tbc_backward_case(40, 4, 60, 32, 3, 1)
    filled, other = fill(case, 1), fill(case, 1)
    for name in ("self", "input", "weight"):
        other[name] = moved(other[name].view, shift)
    call(case, filled, engine="fast")
    call(case, other, engine="fast")
    assert bits(case, filled) == bits(case, other)


@pytest.mark.parametrize("name", ["self", "input", "weight"])
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_reaches_only_what_it_meets(name: str, pad: int, value: float) -> None:
    """oneDNN multiplies pairs of bfloat16, and makes a pair with zero of one that is left over: 0·NaN is NaN."""
    for in_channels, out_channels in ((16, 1), (17, 16)):
        case = conv_tbc_backward_case(2, 1, in_channels, out_channels, 2, pad, dtype=BFLOAT16)
        filled = fill(case)
        filled[name].view[-1, -1, -1] = value
        call(case, filled, engine="fast")
        for output in judge(case.op, case.call, views(filled, case.op)):
            assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"
