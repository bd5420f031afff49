"""Convolution on oneDNN: right in every layout, at any shape, dtype, stride and value; the same bits run after run."""

from __future__ import annotations

import itertools
import os
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
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.product import CPU
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels import convolution_direct, convolution_fast, convolution_layouts, onednn, precedence
from aclnn.kernels.convolution_program import OF_DATA, OF_WEIGHTS, PLAIN, PRODUCTS
from aclnn.ops.convolution import convolution_backward, convolution_backward_case
from tests.harness import assert_sound, bits, call

pytest.importorskip("numba")
PAIRS = list(itertools.product(OF_DATA, OF_WEIGHTS))
SPECIAL = [np.nan, np.inf, -np.inf]


@pytest.fixture(autouse=True, scope="module")
def onednn_alone() -> Iterator[None]:
    """Direct kernels leave everything to oneDNN here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution_direct, "MOST_PAIRS", 0)
        aclnn.cache_clear()
        yield
    aclnn.cache_clear()


def served(case: Case) -> bool:
    """Whether the fast engine takes a case: all but empty ones, float64, and those that want nothing."""
    names = ("gradOutput", "input", "weight")
    specs = [case.values[n] for n in names]
    return all(not s.is_empty and s.dtype.name != "float64" for s in specs) and any(case.values["outputMask"])


CASES = [
    pytest.param(case, id=f"{i}-{case.note}") for i, case in enumerate(ops.cases(convolution_backward)) if served(case)
]


@pytest.fixture(autouse=True)
def tiles_leave_it(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever is faster, oneDNN serves."""
    monkeypatch.setattr(precedence, "of_convolution", lambda *given: "not asked")
    aclnn.cache_clear()
    yield
    aclnn.cache_clear()


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets the layouts inside, whatever the table says."""

    def use(pair: tuple[str, str]) -> None:
        aclnn.cache_clear()
        monkeypatch.setattr(convolution_layouts, "choose", lambda problem: pair)

    yield use
    aclnn.cache_clear()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("case", CASES)
def test_every_case_in_every_layout(case: Case, pair: tuple[str, str], layouts: Any) -> None:
    layouts(pair)
    assert_sound(case, "fast")


@st.composite
def shapes(draw: st.DrawFn) -> Case:
    """Larger problems than the interesting cases: enough channels and positions for every implementation."""
    axes = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 1, 1, 2, 16]))
    kernel = tuple(draw(st.sampled_from([1, 2, 3, 5])) for _ in range(axes))

    def each(values: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(values) for _ in range(axes))

    stride, transposed = each(st.integers(1, 3)), draw(st.booleans())
    try:
        return convolution_backward_case(
            batch=draw(st.integers(1, 3)),
            in_channels=groups * draw(st.sampled_from([1, 3, 16, 20, 33])),
            out_channels=groups * draw(st.sampled_from([1, 2, 16, 17])),
            size=each(st.integers(1, {1: 40, 2: 18, 3: 9}[axes])),
            kernel=kernel,
            stride=stride,
            padding=tuple(draw(st.integers(0, k)) for k in kernel),
            dilation=each(st.sampled_from([1, 1, 2])),
            output_padding=tuple(draw(st.integers(0, s - 1)) for s in stride) if transposed else 0,
            groups=groups,
            transposed=transposed,
            dtype=draw(st.sampled_from([FLOAT32, FLOAT32, FLOAT16, BFLOAT16])),
            output_mask=draw(st.sampled_from([(True, True, True), (True, False, False), (False, True, True)])),
            product=CPU,
        )
    except ValueError:  # no room for the kernel
        assume(False)
        raise


@settings(max_examples=200)
@given(shapes(), st.sampled_from(PAIRS), st.integers(1, 3), st.integers(0, 99), st.lists(st.sampled_from(SPECIAL)))
def test_any_shape_in_any_layout_with_any_value(
    case: Case, pair: tuple[str, str], threads: int, seed: int, specials: list[float]
) -> None:
    assume(served(case))
    filled, rng = fill(case, seed), np.random.default_rng(seed)
    for value in specials[:4]:
        view = filled[("gradOutput", "input", "weight")[rng.integers(3)]].view
        view[tuple(rng.choice([0, n - 1, rng.integers(n)]) for n in view.shape)] = value  # corners meet padding
    with pytest.MonkeyPatch.context() as patch, aclnn.threads(threads):
        patch.setattr(convolution_layouts, "choose", lambda problem: pair)
        aclnn.cache_clear()
        call(case, filled, engine="fast")
        aclnn.cache_clear()
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("stride", [(1, 2), (2, 1), (2, 2)], ids=str)
def test_one_tap_with_strides_in_every_layout(stride: tuple[int, int], pair: tuple[str, str], layouts: Any) -> None:
    """With the channels last and two threads, oneDNN 3.2 wrote beyond the workspace (AVX-512), made wrong sums, or
    waited for ever (AVX2)."""
    layouts(pair)
    with aclnn.threads(2):
        for size, out_channels in ((4, 1), (8, 17), (20, 1)):
            case = convolution_backward_case(
                batch=1, in_channels=3, out_channels=out_channels, size=size, kernel=1, stride=stride, product=CPU
            )
            for _ in range(5):
                assert_sound(case, "fast")


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
def test_large_positive_sums_are_within_the_bound(dtype: DType) -> None:
    """Sums that only grow are the hard ones: 20,000 terms, none cancels another."""
    case = convolution_backward_case(batch=8, in_channels=16, out_channels=16, size=50, padding=1, dtype=dtype)
    filled, rng = fill(case), np.random.default_rng(1)
    for name in ("gradOutput", "input", "weight"):
        filled[name].view[...] = rng.uniform(0.5, 1.5, filled[name].view.shape)
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("size", [(60,), (9, 8), (3, 4, 5)], ids=str)
def test_one_tap_as_matrix_products(size: tuple[int, ...], transposed: bool, layouts: Any) -> None:
    layouts((PLAIN, PRODUCTS))
    case = convolution_backward_case(
        batch=3, in_channels=40, out_channels=48, size=size, kernel=1, padding=0, transposed=transposed, product=CPU
    )
    assert_sound(case, "fast")
    *_, parts = convolution_fast.programs._made.values()
    assert len({p for p, _ in parts.program.steps[-3:]}) == 2, "two products, one that writes and one that adds"


@pytest.mark.parametrize("stride", [1, 2])
def test_bfloat16_depthwise_is_not_widened(stride: int) -> None:
    """Its tensors go in and out as they are: the workspace has no float32 copies of them."""
    case = convolution_backward_case(
        in_channels=16, out_channels=16, groups=16, size=30, padding=1, stride=stride, dtype=BFLOAT16
    )
    assert_sound(case, "fast")
    assert (convolution_fast.compute_dtype(case.call) is BFLOAT16) == onednn.library().has_avx512
    dilated = convolution_backward_case(in_channels=16, out_channels=16, groups=16, dilation=2, dtype=BFLOAT16)
    assert (convolution_fast.compute_dtype(dilated.call) is BFLOAT16) == onednn.library().has_bfloat16


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
def test_same_bits_run_after_run_and_in_another_workspace(dtype: DType, transposed: bool) -> None:
    case = convolution_backward_case(
        in_channels=20, out_channels=18, size=19, padding=1, stride=2, transposed=transposed, dtype=dtype
    )
    found = set()
    for repeat in range(3):
        filled = fill(case, 5)
        given_ = {a.name: filled[a.name] for a in case.op.inputs}
        out = tuple(filled[a.name] for a in case.op.outputs)
        plan = aclnn.convolution_backward._plan(given_, out, case.product, "fast", True)
        for _ in range(2):
            plan.run(np.full(plan.workspace_size + 8 * repeat, 0xFF, np.uint8)[8 * repeat :])
            found.add(tuple(bits(case, filled)))
    assert len(found) == 1


@pytest.mark.long
@pytest.mark.parametrize("isa", ["SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "DEFAULT"])
def test_every_instruction_set(isa: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "layout or bits or bound",
    ]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout[-3000:]


def test_native_bfloat16_arithmetic_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN emulates it where the processor does not have it, so that this path runs everywhere."""
    if not onednn.library().has_avx512:
        pytest.skip("oneDNN computes no bfloat16 here")
    monkeypatch.setattr(onednn.library(), "has_bfloat16", True)
    aclnn.cache_clear()
    for transposed in (False, True):
        case = convolution_backward_case(
            in_channels=20, out_channels=18, size=19, padding=1, transposed=transposed, dtype=BFLOAT16
        )
        assert_sound(case, "fast")
    aclnn.cache_clear()


def _plan(case: Case, engine: str | None = None) -> aclnn.Executor:
    filled = fill(case)
    given_ = {a.name: filled[a.name] for a in case.op.inputs}
    return aclnn.convolution_backward._plan(
        given_, tuple(filled[a.name] for a in case.op.outputs), case.product, engine, False
    )


def test_who_serves_what() -> None:
    large, small = convolution_backward_case(in_channels=32, out_channels=32, size=20), convolution_backward_case()
    assert _plan(large).kernel == "onednn"
    assert _plan(large).workspace_size > 0
    assert _plan(small).kernel == "numpy"
    assert "products are fewer than" in dict(_plan(small).refused)["onednn"]
    assert _plan(small, "fast").kernel == "onednn"
    only_bias = large.but(outputMask=(False, False, True), gradInput=None, gradWeight=None)
    assert _plan(only_bias).kernel == "numba"


@pytest.mark.parametrize(
    ("channels", "groups", "name"),
    [(32, 1, "dense"), (4, 1, "few channels"), (32, 32, "depthwise"), (32, 2, "grouped"), (32, 8, "narrow groups")],
)
def test_classes_of_shapes(channels: int, groups: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    aclnn.cache_clear()
    seen: list[str] = []
    choose = convolution_layouts.choose

    def noted(problem: Any) -> Any:
        seen.extend(convolution_layouts.names_of(problem))
        return choose(problem)

    monkeypatch.setattr(convolution_layouts, "choose", noted)
    x, w = np.ones((1, channels, 9, 9), np.float32), np.ones((channels, channels // groups, 3, 3), np.float32)
    aclnn.convolution_backward.plan(x, x, w, None, 1, 1, 1, False, 0, groups, (True, True, False), engine="fast")
    assert seen[0] == f"{name}, 3 taps, unit stride, 2-D"
    assert all(seen[0] in classes for classes in convolution_layouts._table().values())


def test_without_onednn_tiles_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> onednn.Library:
        raise onednn.OneDnnError("oneDNN cannot be loaded (not there)")

    monkeypatch.setattr(onednn, "library", absent)
    aclnn.cache_clear()
    plan = _plan(convolution_backward_case(in_channels=32, out_channels=32, size=20))
    assert plan.kernel == "tiles"
    assert dict(plan.refused)["onednn"] == "oneDNN cannot be loaded (not there)"
    aclnn.cache_clear()


def test_programs_are_kept_up_to_a_limit() -> None:
    before = convolution_fast.programs
    try:
        convolution_fast.programs = type(before)(lambda parts: 1, limit=3)
        for size in range(5, 12):
            assert_sound(convolution_backward_case(size=size, in_channels=8), "fast")
        assert len(convolution_fast.programs) == 3
    finally:
        convolution_fast.programs = before
