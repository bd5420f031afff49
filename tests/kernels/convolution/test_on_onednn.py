"""Convolutions of bfloat16 on oneDNN: right at any shape, stride and value; the same bits run after run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aclnn
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.base.tensor import TensorSpec
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.convolution import bfloat16_rule, direct, fast, on_onednn
from aclnn.kernels.onednn import library as onednn
from aclnn.ops.convolution import convolution_backward, convolution_backward_case
from aclnn.ops.convolution_forward import convolution, convolution_case
from tests.harness import assert_sound, bits, call
from tests.kernels.convolution.convolutions import SPECIAL, served, shapes
from tests.ops import test_convolution_forward
from tests.strategies import strided

pytest.importorskip("numba")
try:
    if not onednn.library().has_avx512:  # with it oneDNN emulates what the processor may not have
        pytest.skip("oneDNN computes no bfloat16 here", allow_module_level=True)
except onednn.OneDnnError as reason:
    pytest.skip(str(reason), allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def onednn_alone() -> Iterator[None]:
    """Direct kernels and tiles leave all bfloat16 to oneDNN here, whatever this processor would choose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "matmuls_are_ahead", lambda *given: True)
        patch.setattr(bfloat16_rule, "is_ahead", lambda call: "not asked")
        patch.setattr(onednn.library(), "has_amx", True)
        aclnn.cache_clear()
        yield
    aclnn.cache_clear()


CASES = [
    pytest.param(case, id=f"{i}-{case.note}")
    for op in (convolution_backward, convolution)
    for i, case in enumerate(ops.cases(op))
    if {s.dtype for s in case.values.values() if isinstance(s, TensorSpec)} == {BFLOAT16}
    and not any(s.is_empty for s in case.values.values() if isinstance(s, TensorSpec))
]


@pytest.mark.parametrize("case", CASES)
def test_every_case(case: Case) -> None:
    assert_sound(case, "fast")


@settings(max_examples=120)
@given(shapes((BFLOAT16,)), st.integers(1, 3), st.integers(0, 99), st.lists(st.sampled_from(SPECIAL)))
def test_any_shape_with_any_value(case: Case, threads: int, seed: int, specials: list[float]) -> None:
    assume(served(case))
    filled, rng = fill(case, seed), np.random.default_rng(seed)
    for value in specials[:4]:
        view = filled[("gradOutput", "input", "weight")[rng.integers(3)]].view
        view[tuple(rng.choice([0, n - 1, rng.integers(n)]) for n in view.shape)] = value  # corners meet padding
    with aclnn.threads(threads):
        call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("nd", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
def test_taps_that_meet_nothing_have_a_gradient_of_zeros(nd: int, transposed: bool) -> None:
    sizes = {"size": 1, "kernel": 2, "stride": 2, "padding": 0 if transposed else 1}
    case = convolution_backward_case(nd, in_channels=16, transposed=transposed, dtype=BFLOAT16, **sizes)
    assert_sound(case, "fast")


def test_what_it_cannot_lay_out_is_computed_by_others() -> None:
    """A broadcast gradient that runs backwards, of a transposed convolution: oneDNN makes no program of it."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((16, 5)).astype(aclnn.bfloat16)
    grad = np.lib.stride_tricks.as_strided(drawn[15:], (5, 2, 16), (2, 0, -10))
    x, weight = (rng.standard_normal(shape).astype(aclnn.bfloat16) for shape in ((5, 32, 7), (32, 2, 4)))
    given = {"stride": [2], "padding": [0], "dilation": [1], "transposed": True, "output_padding": [0], "groups": 1}
    results = aclnn.convolution_backward(
        grad, x, weight, [2], **given, output_mask=[False, True, True], product="cpu", engine="fast"
    )
    arguments = {"gradOutput": grad, "input": x, "weight": weight, "biasSizes": [2], "outputMask": [False, True, True]}
    arguments |= {"outputPadding" if name == "output_padding" else name: value for name, value in given.items()}
    made = {"gradWeight": results[1], "gradBias": results[2]}
    assert aclnn.compare(made, op="aclnnConvolutionBackward", arguments=arguments, product="cpu").sound


@settings(max_examples=60)
@given(test_convolution_forward.cases(dtype=BFLOAT16), st.data())
def test_any_convolution_forwards_through_any_strides(case: Case, data: st.DataObject) -> None:
    assert_sound(data.draw(st.one_of(st.just(case), strided(case))), "fast")


@pytest.mark.parametrize("stride", [(1, 2), (2, 1), (2, 2)], ids=str)
def test_one_tap_with_strides(stride: tuple[int, int]) -> None:
    """Here kernels of oneDNN 3.2 for other layouts wrote beyond their scratch, made wrong sums, or never ended."""
    with aclnn.threads(2):
        for size, out_channels in ((4, 1), (8, 17), (20, 1)):
            case = convolution_backward_case(
                batch=1, in_channels=3, out_channels=out_channels, size=size, kernel=1, stride=stride, dtype=BFLOAT16
            )
            for _ in range(5):
                assert_sound(case, "fast")


def test_large_positive_sums_are_within_the_bound() -> None:
    """Sums that only grow are the hard ones: 20,000 terms, none cancels another."""
    case = convolution_backward_case(batch=8, in_channels=16, out_channels=16, size=50, padding=1, dtype=BFLOAT16)
    filled, rng = fill(case), np.random.default_rng(1)
    for name in ("gradOutput", "input", "weight"):
        filled[name].view[...] = rng.uniform(0.5, 1.5, filled[name].view.shape)
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("transposed", [False, True])
def test_same_bits_run_after_run_and_in_another_workspace(transposed: bool) -> None:
    case = convolution_backward_case(
        in_channels=20, out_channels=18, size=19, padding=1, stride=2, transposed=transposed, dtype=BFLOAT16
    )
    found = set()
    for repeat in range(3):
        filled = fill(case, 5)
        plan = _plan(case, filled, "fast")
        for _ in range(2):
            plan.run(np.full(plan.workspace_size + 8 * repeat, 0xFF, np.uint8)[8 * repeat :])
            found.add(tuple(bits(case, filled)))
    assert len(found) == 1


def _plan(case: Case, filled: dict[str, object], engine: str | None = None) -> aclnn.Executor:
    given_ = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.outputs)
    return getattr(aclnn, case.op.python)._plan(given_, out if len(out) > 1 else out[0], case.device, engine, True)


LARGE = {"in_channels": 32, "out_channels": 32, "size": 60}


def test_who_serves_what(monkeypatch: pytest.MonkeyPatch) -> None:
    large = convolution_backward_case(**LARGE, dtype=BFLOAT16)
    assert _plan(large, fill(large)).kernel == "onednn"
    for dtype in (FLOAT32, FLOAT16):
        other = convolution_backward_case(**LARGE, dtype=dtype)
        assert fast.convolution_onednn(other.call, 1).reason == "it takes bfloat16"
    monkeypatch.setattr(onednn.library(), "has_amx", False)
    aclnn.cache_clear()
    plan = _plan(large, fill(large))
    assert plan.kernel == "tiles"
    assert dict(plan.refused)["onednn"] == "the processor has no AMX, without which oneDNN is slower"
    aclnn.cache_clear()


IS_AHEAD = bfloat16_rule.is_ahead


@pytest.mark.parametrize(
    ("change", "backwards", "forwards"),
    [
        ({}, True, True),
        ({"in_channels": 3}, True, False),
        ({"in_channels": 3, "kernel": 7}, True, True),
        ({"in_channels": 3, "stride": 4, "kernel": 4, "size": 100}, False, False),
        ({"in_channels": 5}, True, True),
        ({"in_channels": 24, "groups": 2}, False, False),
        ({"groups": 2}, True, True),
        ({"in_channels": 20, "out_channels": 24}, True, True),
        ({"kernel": 1, "size": 90}, True, True),
        ({"kernel": 1, "size": 90, "groups": 2}, False, False),
        ({"kernel": 1, "size": 90, "in_channels": 16}, False, False),
        ({"size": 12}, False, False),
    ],
    ids=str,
)
def test_where_onednn_is_asked_first(change: dict[str, object], backwards: bool, forwards: bool) -> None:
    attributes = {**LARGE, "dtype": BFLOAT16, **change}
    asked = [IS_AHEAD(make(**attributes).call) for make in (convolution_backward_case, convolution_case)]
    assert [reason is not None for reason in asked] == [backwards, forwards]


@pytest.mark.parametrize("has_amx", [False, True])
def test_what_is_not_bfloat16_or_without_amx_does_not_wait_for_onednn(
    has_amx: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn.library(), "has_amx", has_amx)
    asked = [IS_AHEAD(convolution_backward_case(**LARGE, dtype=dtype).call) for dtype in (FLOAT32, BFLOAT16)]
    assert [reason is not None for reason in asked] == [False, has_amx]


@pytest.mark.parametrize("transposed", [False, True])
def test_pictures_with_channels_last_are_not_laid_out_again(transposed: bool) -> None:
    case = convolution_backward_case(**LARGE, padding=1, transposed=transposed, dtype=BFLOAT16)
    strides = (32 * 60 * 60, 1, 32 * 60, 32)
    case = case.seen("channels last", **dict.fromkeys(("gradOutput", "input", "gradInput"), (strides, 0, None)))
    steps = on_onednn.Bfloat16Plan(case.call, None, 1).parts().program.steps
    met = [buffer for _, given in steps for which, buffer in given.items() if which != onednn.SCRATCHPAD]
    assert all(buffer.offset is None for buffer in met if buffer.layout.size >= 2 * case.call["input"].size)
    assert_sound(case, "fast")


MISTAKEN: list[dict[str, Any]] = [
    {"in_channels": 100, "out_channels": 2, "size": (17, 9), "kernel": (1, 2), "stride": (3, 1), "padding": (0, 2)},
    {"in_channels": 48, "out_channels": 64, "size": (30, 30), "kernel": (2, 3), "stride": (3, 1)},
    {"in_channels": 48, "out_channels": 130, "size": (28, 14), "kernel": (7, 4), "stride": (3, 4), "padding": (3, 0)},
    {"in_channels": 32, "out_channels": 8, "size": (5, 7, 9), "kernel": 3, "stride": (3, 2, 2), "padding": (0, 1, 1)},
    *(
        {"in_channels": 16, "out_channels": 8, "size": (1, *more), "kernel": (2, *[1] * len(more))}
        | {"stride": 3, "padding": (1, *[0] * len(more)), "dilation": 2}
        for more in ((), (5,), (5, 5))  # the picture lies at 0, the taps at -1 and 1
    ),
]
"""What oneDNN 3.2 gets wrong with AMX: sums with strides, gradients of planes that no tap meets; and where nothing but
padding was met, in three dimensions, it ended the process."""


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("attributes", MISTAKEN, ids=str)
def test_what_it_gets_wrong_is_made_otherwise(attributes: dict[str, Any], transposed: bool, threads: int) -> None:
    with aclnn.threads(threads):
        for make in (convolution_case, convolution_backward_case):
            assert_sound(make(**attributes, transposed=transposed, dtype=BFLOAT16, device=CPU), "fast")


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("name", ["gradOutput", "input", "weight"])
def test_what_is_not_finite_is_seen_wherever_is_least_to_look_at(name: str, size: int) -> None:
    """In the pictures where the weight is large, in the gradients where they are."""
    case = convolution_backward_case(in_channels=40, out_channels=40, size=size, padding=1, dtype=BFLOAT16)
    filled = fill(case)
    filled[name].view[0, 0, 0, 0] = np.inf  # beside padding
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound


def test_without_onednn_tiles_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> onednn.Library:
        raise onednn.OneDnnError("oneDNN cannot be loaded (not there)")

    monkeypatch.setattr(onednn, "library", absent)
    aclnn.cache_clear()
    large = convolution_backward_case(**LARGE, dtype=BFLOAT16)
    plan = _plan(large, fill(large))
    assert plan.kernel == "tiles"
    assert dict(plan.refused)["onednn"] == "oneDNN cannot be loaded (not there)"
    aclnn.cache_clear()


def test_programs_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_onednn, "programs", type(on_onednn.programs)(lambda parts: 1, limit=3))
    for size in range(5, 12):
        assert_sound(convolution_backward_case(size=size, in_channels=8, dtype=BFLOAT16), "fast")
    assert len(on_onednn.programs) == 3
