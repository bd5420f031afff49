"""Convolution against its seed sample, PyTorch, its definition, finite differences, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.foreign_arrays import to_torch
from aclnn.base.format import Format
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.convolution import convolution_backward_case
from tests.harness import assert_sound, call
from tests.ops.convolution_by_definition import backward, forward
from tests.strategies import strided

ENGINES = ["auto", "numpy", "reference"]
GRADIENTS = ("gradInput", "gradWeight", "gradBias")
TRANSPOSED = pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])

Sizes = dict[str, Any]
"""The keyword arguments of a case: what a failing example should print."""


@st.composite
def sizes(draw: st.DrawFn, largest: int = 3, four: bool = False) -> Sizes:
    """Any convolution that has an output: every attribute, with up to `largest` of everything."""
    nd = 2 if four else draw(st.integers(1, 3))
    transposed, groups = draw(st.booleans()), draw(st.integers(1, 3))

    def per_axis(low: int, high: int, count: int = nd) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(count))

    kernel, stride, dilation = per_axis(1, largest), per_axis(1, largest), per_axis(1, 2)
    padding = per_axis(0, 2, 4 if four else nd)
    ends = [padding[2 * a] + padding[2 * a + 1] if four else 2 * padding[a] for a in range(nd)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    extra = tuple(draw(st.integers(0, s - 1)) for s in stride) if transposed else (0,) * nd
    if transposed:  # (size − 1)·stride − ends + reach + extra ≥ 1
        least = [1 + max(0, -(-(p + 1 - r - e) // s)) for p, r, e, s in zip(ends, reach, extra, stride, strict=True)]
    else:
        least = [max(1, r - p) for r, p in zip(reach, ends, strict=True)]
    return {
        "size": tuple(n + draw(st.integers(0, largest)) for n in least),
        "batch": draw(st.integers(1, 2)),
        "in_channels": groups * draw(st.integers(1, 2)),
        "out_channels": groups * draw(st.integers(1, 2)),
        "groups": groups,
        "transposed": transposed,
        "output_padding": extra,
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
    }


def double(sizes: Sizes) -> Case:
    return convolution_backward_case(**sizes, dtype=FLOAT64, device=CPU)


def mixed(case: Case, dtypes: tuple[DType, DType, DType], grad_weight: DType) -> Case:
    """The case with a dtype of its own for gradOutput, input and weight."""
    of_output, of_input, of_weight = dtypes
    found = {"gradOutput": of_output, "gradBias": of_output, "input": of_input, "gradInput": of_input}
    found |= {"weight": of_weight, "gradWeight": grad_weight}
    return case.but("mixed", **{n: case.values[n]._replace(dtype=d) for n, d in found.items()})


def arrays(filled: dict[str, Any], *names: str) -> list[np.ndarray]:
    return [filled[name].view for name in names or ("gradOutput", "input", "weight")]


def attributes(case: Case) -> list[Any]:
    names = ("biasSizes", "stride", "padding", "dilation", "transposed", "outputPadding", "groups", "outputMask")
    return [list(v) if isinstance(v, tuple) else v for v in (case.values[n] for n in names)]


def by_torch(case: Case, filled: dict[str, Any]) -> dict[str, np.ndarray]:
    """The gradients that PyTorch computes in the dtypes of the case."""
    import torch

    given_ = [to_torch(np.array(a, order="C")) for a in arrays(filled)]
    found = torch.ops.aten.convolution_backward(*given_, *attributes(case))
    return {name: t.to(torch.float64).numpy() for name, t in zip(GRADIENTS, found, strict=True)}


def assert_within_the_allowed_error(case: Case, filled: dict[str, Any], gradients: dict[str, Any]) -> None:
    for output in judge(case.op, case.call, {**views(filled, case.op), **gradients}):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_seed_sample(engine: str) -> None:
    g, x = np.ones((2, 2, 7, 7), np.float32), np.ones((2, 2, 7, 7), np.float32)
    w = np.ones((2, 2, 1, 1), np.float32)
    results = aclnn.convolution_backward(
        g, x, w, [2], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True], 1, engine=engine
    )
    for result, shape, value in zip(results, (x.shape, w.shape, (2,)), (2, 98, 98), strict=True):
        assert result.shape == shape
        assert (result == value).all()


@pytest.mark.torch
@settings(max_examples=300)
@given(sizes(), st.integers(0, 9), st.sampled_from(["numpy", "reference"]))
def test_against_torch_in_float64(sizes: Sizes, seed: int, engine: str) -> None:
    """Both are float64 sums of the same terms in another order: what rounding allows is 1e-14 of their size."""
    case = double(sizes)
    filled = assert_sound(case, engine, seed)
    assert_within_the_allowed_error(case, filled, by_torch(case, filled))


@pytest.mark.torch
@settings(max_examples=300)
@given(sizes(), st.sampled_from([FLOAT32, FLOAT16, BFLOAT16]), st.integers(0, 9), st.sampled_from(["auto", "numpy"]))
def test_against_torch_in_every_dtype(sizes: Sizes, dtype: DType, seed: int, engine: str) -> None:
    """Torch rounds float16 and bfloat16 sums after each image, so its float64 gradients of the same inputs count."""
    case, wide = convolution_backward_case(**sizes, dtype=dtype), double(sizes)
    filled, widened = assert_sound(case, engine, seed), fill(wide)
    for mine, copy in zip(arrays(filled), arrays(widened), strict=True):
        copy[...] = mine
    assert_within_the_allowed_error(wide, widened, by_torch(wide, widened))
    if dtype is FLOAT32:
        assert_within_the_allowed_error(case, filled, by_torch(case, filled))


@pytest.mark.torch
@settings(max_examples=150)
@given(sizes(four=True), st.integers(0, 9), st.sampled_from(["numpy", "reference"]))
def test_up_down_left_right_padding_against_torch_by_padding_and_cropping(sizes: Sizes, seed: int, engine: str) -> None:
    import torch
    from torch.nn.functional import conv2d, conv_transpose2d, pad

    case = double(sizes)
    filled = assert_sound(case, engine, seed)
    g, x, w = (torch.tensor(a, requires_grad=True) for a in arrays(filled))
    up, down, left, right = case.values["padding"]
    stride, dilation, groups = (case.values[n] for n in ("stride", "dilation", "groups"))
    if case.values["transposed"]:
        whole = conv_transpose2d(x, w, None, stride, 0, case.values["outputPadding"], groups, dilation)
        y = whole[:, :, up : whole.shape[2] - down, left : whole.shape[3] - right]
    else:
        y = conv2d(pad(x, (left, right, up, down)), w, None, stride, 0, dilation, groups)
    y.backward(g.detach())
    theirs = {"gradInput": x.grad.numpy(), "gradWeight": w.grad.numpy(), "gradBias": filled["gradBias"].view}
    assert_within_the_allowed_error(case, filled, theirs)


@settings(max_examples=100)
@given(sizes(largest=2), st.integers(0, 9), st.sampled_from(["numpy", "reference"]))
def test_against_central_differences(sizes: Sizes, seed: int, engine: str) -> None:
    """The slope of Σ gradOutput·output along a random direction in input, weight and bias."""
    case = double(sizes)
    filled = fill(case, seed)
    call(case, filled, engine=engine)
    g, x, w = arrays(filled)
    rng = np.random.default_rng(seed)
    given_ = [x, w, rng.normal(size=g.shape[1])]
    ways = [rng.normal(size=a.shape) for a in given_]

    def loss(step: float) -> float:
        return float((g * forward(case, *(a + step * way for a, way in zip(given_, ways, strict=True)))).sum())

    slope = (loss(1e-3) - loss(-1e-3)) / 2e-3
    ours = sum((a * way).sum() for a, way in zip(arrays(filled, *GRADIENTS), ways, strict=True))
    assert ours == pytest.approx(slope, rel=1e-8, abs=1e-8)


@settings(max_examples=150)
@given(sizes(largest=2), st.data(), st.sampled_from(["numpy", "reference"]))
def test_nan_and_inf_go_where_the_definition_takes_them_and_nowhere_else(
    sizes: Sizes, data: st.DataObject, engine: str
) -> None:
    """Padding takes no part, so a border element that is Inf meets no zero there."""
    case = convolution_backward_case(**sizes)
    filled = fill(case)
    for name in data.draw(st.lists(st.sampled_from(["gradOutput", "input", "weight"]), min_size=1, max_size=2)):
        flat = filled[name].view.reshape(-1)
        flat[data.draw(st.integers(0, flat.size - 1))] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        flat[data.draw(st.integers(0, flat.size - 1))] = 0
    call(case, filled, engine=engine)
    assert_not_finite_as_defined(case, filled)


def assert_not_finite_as_defined(case: Case, filled: dict[str, Any]) -> None:
    with np.errstate(invalid="ignore"):
        expected = backward(case, *(a.astype(np.float64) for a in arrays(filled)))
    for ours, theirs in zip(arrays(filled, *GRADIENTS), expected, strict=True):
        assert (np.isnan(ours) == np.isnan(theirs)).all()
        for sign in (np.inf, -np.inf):
            assert ((ours == sign) == (theirs == sign)).all()


@TRANSPOSED
@pytest.mark.parametrize("engine", ENGINES)
def test_inf_on_every_border_does_not_meet_the_padding(transposed: bool, engine: str) -> None:
    case = convolution_backward_case(size=4, padding=2, transposed=transposed)
    filled = fill(case)
    for axis, name in ((2, "gradOutput"), (3, "gradOutput"), (2, "input"), (3, "input")):
        filled[name].view[(slice(None),) * axis + ([0, -1],)] = np.inf
    filled["weight"].view[...] = 1
    call(case, filled, engine=engine)
    assert not np.isnan(filled["gradInput"].view).any()
    assert np.isinf(filled["gradInput"].view).any()
    assert_not_finite_as_defined(case, filled)


MASKS = st.tuples(st.booleans(), st.booleans(), st.booleans())
DTYPES = st.sampled_from([FLOAT32, FLOAT16, BFLOAT16])


@settings(max_examples=300)
@given(sizes(), MASKS, st.tuples(DTYPES, DTYPES, DTYPES), DTYPES, st.integers(0, 3), st.data())
def test_any_attributes_masks_dtypes_and_strides_are_sound(
    sizes: Sizes,
    mask: tuple[bool, ...],
    dtypes: tuple[DType, DType, DType],
    grad_weight: DType,
    cube: int,
    data: st.DataObject,
) -> None:
    if set(dtypes) == {BFLOAT16}:
        cube = min(cube, 1)
    case = convolution_backward_case(**sizes, output_mask=mask, cube_math_type=cube)
    case = data.draw(strided(mixed(case, dtypes, grad_weight)))
    assert_sound(case, data.draw(st.sampled_from(ENGINES)))


@pytest.mark.parametrize("engine", ENGINES)
def test_masked_off_gradients_are_none_and_what_is_given_for_them_stays(engine: str) -> None:
    case = convolution_backward_case(size=4)
    g, x, w = arrays(fill(case))
    both = aclnn.convolution_backward(g, x, w, None, 1, 0, 1, False, 0, 1, [True, True, False], engine=engine)
    assert both[2] is None
    for wanted in range(3):
        mask = [i == wanted for i in range(3)]
        out: list[Any] = [np.full(shape, 7, np.float32) for shape in (x.shape, w.shape, (6,))]
        only = aclnn.convolution_backward(g, x, w, [6], 1, 0, 1, False, 0, 1, mask, engine=engine)
        assert [r is None for r in only] == [not m for m in mask]
        aclnn.convolution_backward(g, x, w, [6], 1, 0, 1, False, 0, 1, mask, out=tuple(out), engine=engine)
        for i in range(3):
            assert (out[i] == (only[i] if i == wanted else 7)).all()
            assert both[i] is None or i != wanted or (only[i] == both[i]).all()


def test_nothing_wanted_is_a_success_without_workspace() -> None:
    g, x, w = arrays(fill(convolution_backward_case(size=4)))
    plan = aclnn.convolution_backward.plan(g, x, w, None, 1, 0, 1, False, 0, 1, [False] * 3)
    assert plan.workspace_size == 0
    assert plan.run() == (None, None, None)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "sizes",
    [
        {"batch": 0, "size": 4},
        {"batch": 0, "size": (3, 0), "kernel": (3, 1), "padding": 1},
        {"batch": 0, "size": 4, "transposed": True},
        {"batch": 0, "size": 4, "out_channels": 0, "transposed": True},
        {"in_channels": 0, "size": 4},
        {"in_channels": 0, "size": 0, "kernel": 1, "padding": 1},
    ],
    ids=str,
)
def test_empty_input(sizes: Sizes, engine: str) -> None:
    """gradInput is empty, gradWeight zeros, gradBias the sum of gradOutput as ever."""
    case = convolution_backward_case(**sizes)
    g, x, w = arrays(fill(case))
    grad_x, grad_w, grad_b = aclnn.convolution_backward(g, x, w, *attributes(case), engine=engine)
    assert grad_x.shape == x.shape
    assert grad_x.size == 0
    assert grad_w.shape == w.shape
    assert not grad_w.any()
    np.testing.assert_allclose(grad_b, g.sum(axis=(0, 2, 3)), rtol=1e-5)
    assert grad_b.any() == (g.size > 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_number_serves_all_axes(engine: str) -> None:
    case = convolution_backward_case(3, size=5, stride=2, padding=1, dilation=2, groups=2)
    g, x, w = arrays(fill(case))
    each = aclnn.convolution_backward(g, x, w, *attributes(case), engine=engine)
    one = aclnn.convolution_backward(
        g, x, w, [6], 2, np.int64(1), np.array(2), False, 0, 2, (True, True, True), engine=engine
    )
    for a, b in zip(each, one, strict=True):
        assert (a == b).all()


def test_the_default_of_grad_weight_is_weights_dtype() -> None:
    g, x, w = arrays(fill(convolution_backward_case(size=4)))
    results = aclnn.convolution_backward(
        g.astype(np.float16), x, w.astype(BFLOAT16.numpy), [6], 1, 0, 1, False, 0, 1, [True] * 3
    )
    assert [r.dtype for r in results] == [np.float32, BFLOAT16.numpy, np.float16]


@TRANSPOSED
@pytest.mark.parametrize("engine", ENGINES)
def test_cube_math_type_rounds_the_inputs_but_not_what_the_bias_sums(transposed: bool, engine: str) -> None:
    fine = np.float32(1 + 2**-12)  # HF32 rounds it up, float16 down
    g, x, w = (np.full(shape, fine) for shape in ((1, 1, 1), (1, 1, 1), (1, 1, 1)))
    seen = {0: fine, 1: np.float32(1 + 2**-11), 2: np.float32(1), 3: np.float32(1 + 2**-11)}
    for cube, value in seen.items():
        results = aclnn.convolution_backward(g, x, w, [1], 1, 0, 1, transposed, 0, 1, [True] * 3, cube, engine=engine)
        assert results[0] == results[1] == value * value
        assert results[2] == fine
    fine16 = np.float16(1 + 2**-10)
    half = [np.full(a.shape, fine16) for a in (g, x, w)]
    results = aclnn.convolution_backward(*half, [1], 1, 0, 1, transposed, 0, 1, [True] * 3, 3, engine=engine)
    assert results[0] == results[1] == np.float16(float(fine16) ** 2)  # float16 is rounded no further


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_long_sums_of_equal_terms_keep_the_bound(value: float, engine: str) -> None:
    """200,000 terms in gradBias and gradWeight, 4,096 in gradInput: a running float32 sum is off by 0.2 %."""
    for sizes in ({"size": (200, 500), "in_channels": 1, "out_channels": 2}, {"size": 1, "out_channels": 4096}):
        case = convolution_backward_case(**sizes, kernel=1)
        filled = fill(case)
        for name in ("gradOutput", "input", "weight"):
            filled[name].view[...] = value
        call(case, filled, engine=engine)
        for output in judge(case.op, case.call, views(filled, case.op)):
            assert output.sound, output.name


def test_float64_is_refused_with_a_sentence_that_helps() -> None:
    g, x, w = arrays(fill(double({"size": 4})))
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.convolution_backward(g, x, w, [6], 1, 0, 1, False, 0, 1, [True] * 3)
    assert refused.value.message.endswith("must be float32, float16 or bfloat16 (product cpu takes float64).")


def test_a_wrong_size_is_said_with_both_values() -> None:
    g, x, w = arrays(fill(convolution_backward_case(size=7)))
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.convolution_backward(g, x, w, [6], 1, 1, 1, False, 0, 1, [True] * 3)
    assert "gradOutput.shape[2:] is [5, 5] but the output size floor(" in refused.value.message
    assert "is [7, 7]; the two must be equal when not transposed." in refused.value.message
    assert refused.value.code == 161002


def test_what_python_cannot_pass_is_said() -> None:
    g, x, w = arrays(fill(convolution_backward_case(size=4)))
    for stride, text in (("1", "a str"), (1.5, "a float"), ([1.5, 1], "a float"), (None, "null"), (True, "True")):
        with pytest.raises(aclnn.AclnnError, match=f"stride is {text}"):
            aclnn.convolution_backward(g, x, w, [6], stride, 0, 1, False, 0, 1, [True] * 3)
    with pytest.raises(aclnn.AclnnError, match="input is null"):
        aclnn.convolution_backward(g, None, w, [6], 1, 0, 1, False, 0, 1, [True] * 3)
    with pytest.raises(
        aclnn.AclnnError, match="biasSizes is a contiguous ndarray of dtype int64; it must be a sequence"
    ):
        aclnn.convolution_backward(g, x, w, np.array(6), 1, 0, 1, False, 0, 1, [True] * 3)


def test_nd_is_a_format_of_one_and_three_dimensions() -> None:
    for nd, tag in ((1, Format.NCL), (2, Format.NCHW), (3, Format.NCDHW)):
        case = convolution_backward_case(nd, size=3)
        tensors = {name: case.values[name] for name in ("gradOutput", "input", "weight", "gradInput", "gradWeight")}
        assert {spec.format for spec in tensors.values()} == {tag}
        tagged = case.but("all ND", **{name: spec._replace(format=Format.ND) for name, spec in tensors.items()})
        if nd == 2:
            with pytest.raises(aclnn.AclnnError, match="gradOutput has format ND; with rank 4 it must be NCHW"):
                call(tagged, fill(tagged))
        else:
            assert_sound(tagged, "numpy")


@pytest.mark.torch
def test_torch_tensors_in_torch_tensors_out() -> None:
    import torch

    case = convolution_backward_case(size=4, dtype=BFLOAT16)
    filled = fill(case)
    given_ = [to_torch(a.copy()) for a in arrays(filled)]
    results = aclnn.convolution_backward(*given_, *attributes(case))
    call(case, filled)
    for result, name in zip(results, GRADIENTS, strict=True):
        assert result.dtype == torch.bfloat16
        assert (result.float().numpy() == filled[name].view.astype(np.float32)).all()
