"""ELU: x for x > 0, alpha·(exp(x) − 1) otherwise, with two further scales.

Forward   y = scale·x                                    x > 0
          y = alpha·scale·(exp(x·inputScale) − 1)        otherwise

Backward  gradInput = g·scale                                                  x > 0
          gradInput = g·inputScale·alpha·scale·exp(x·inputScale)               otherwise, x the forward's input
          gradInput = g·inputScale·(y + alpha·scale)                           otherwise, y the forward's output

The last line is the second one with exp(…) read off the forward's result. Zero of either sign takes the "otherwise"
branch; NaN gives NaN. exp(…) − 1 is computed as expm1, which keeps its digits where |x| is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

import numpy as np

from aclnn.base.device import DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.float_range import Size, product_total
from aclnn.base.geometry import Array
from aclnn.base.scalar import scalar as number
from aclnn.base.tensor import dense
from aclnn.base.tolerance import Terms
from aclnn.contract.builders import at_least, same_dtype, same_shape, when
from aclnn.contract.cases import Case
from aclnn.contract.model import ANY_FORMAT, Arg, Op, flag, scalar, tensor_in, tensor_out, tensor_updated
from aclnn.ops.definition import Definition


def _scalars(**given: Any) -> tuple[Arg, ...]:
    return (
        scalar("alpha", en="The coefficient of the negative branch.", zh="负半轴的系数。", **given),
        scalar("scale", en="The scale of both branches.", zh="两个分支共同的缩放系数。", **given),
        scalar("inputScale", en="The scale of the input of exp.", zh="指数函数输入的缩放系数。", **given),
    )


def _result(name: str, like: str, en: str, zh: str) -> Arg:
    """An output like an input; where its dtype is another, it is rounded to that of the input first."""
    shared: dict[str, Any] = {"formats": ANY_FORMAT, "shape": like, "dtype_like": like, "round_through": like}
    return tensor_out(name, **shared, dtype_free=True, en=en, zh=zh)


elu_backward = Op(
    "aclnnEluBackward",
    family="Elu",
    header="elu_backward",
    in_place=True,
    en="Gradient of the ELU activation.",
    zh="ELU激活函数的反向计算。",
    args=(
        tensor_in(
            "gradOutput",
            formats=ANY_FORMAT,
            en="Gradient of the forward's output, g.",
            zh="正向输出的梯度，公式中的g。",
        ),
        *_scalars(),
        flag(
            "isResult",
            en="Whether selfOrResult is the forward's output (true) or input (false).",
            zh="selfOrResult是正向输出（true）还是正向输入（false）。",
        ),
        tensor_in(
            "selfOrResult",
            formats=ANY_FORMAT,
            en="The forward's output if isResult, else its input.",
            zh="isResult为true时是正向输出，否则是正向输入。",
        ),
        _result("gradInput", "gradOutput", "Gradient of the forward's input.", "正向输入的梯度。"),
    ),
    rules=(
        same_dtype("gradOutput", "selfOrResult"),
        when("isResult", at_least("alpha", 0)),
        same_shape("gradOutput", "selfOrResult"),
    ),
)

elu = Op(
    "aclnnElu",
    family="Elu",
    header="elu",
    in_place=True,
    en="The ELU activation.",
    zh="ELU激活函数。",
    args=(
        tensor_in("self", python="input", formats=ANY_FORMAT, en="The input, x.", zh="输入，公式中的x。"),
        *_scalars(default=1.0),
        _result("out", "self", "The result, y.", "输出，公式中的y。"),
    ),
)

elu_ = Op(
    "aclnnInplaceElu",
    family="Elu",
    header="elu",
    en="The ELU activation, written over its input.",
    zh="ELU激活函数的原地版本：结果写回输入。",
    args=(
        tensor_updated(
            "selfRef",
            python="input",
            formats=ANY_FORMAT,
            en="The input x, then the result y.",
            zh="输入x，执行后为结果y。",
        ),
        *_scalars(default=1.0),
    ),
)


def elu_backward_reference(
    grad_output: Array, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Array
) -> Array:
    g, x = grad_output.astype(np.float64), self_or_result.astype(np.float64)
    positive = g * scale
    if is_result:
        otherwise = g * input_scale * (x + alpha * scale)
    else:
        otherwise = g * input_scale * alpha * scale * np.exp(x * input_scale)
    return np.where(x > 0, positive, otherwise)


def elu_backward_terms(
    grad_output: Array, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Array
) -> Terms:
    """exp magnifies the rounding of its argument z by |z|; the sum y + alpha·scale cancels."""
    g, x = np.abs(grad_output.astype(np.float64)), self_or_result.astype(np.float64)
    factors = [Size.of(factor) for factor in (g, input_scale, alpha, scale)]
    if is_result:
        sizes = np.abs(x) + abs(alpha * scale)
        otherwise = product_total(*factors[:2], Size.computed(x + alpha * scale, sizes))
    else:
        z = x * input_scale
        magnified = np.exp(z) * (1 + np.minimum(np.abs(z), 1000))  # beyond, exp is 0 or inf: no 0·inf at z = −inf
        otherwise = product_total(*factors, Size.computed(np.exp(z), magnified))
    return Terms(np.where(x > 0, g * abs(scale), otherwise))


def elu_backward_case(
    shape: tuple[int, ...] = (3, 4),
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    is_result: bool = False,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    spec = dense(dtype, shape)
    values = {
        "gradOutput": spec,
        "alpha": number(alpha),
        "scale": number(scale),
        "inputScale": number(input_scale),
        "isResult": is_result,
        "selfOrResult": spec,
        "gradInput": spec,
    }
    return Case(elu_backward, values, device)


def elu_backward_cases() -> Iterator[Case]:
    for dtype in (FLOAT32, FLOAT16, BFLOAT16):
        for is_result in (False, True):
            yield elu_backward_case((3, 5), 1.7, 1.1, 0.9, is_result, dtype)
    for shape in ((), (1,), (0,), (2, 0, 3), (1, 2, 1, 3, 1, 2, 1, 2)):
        yield elu_backward_case(shape, 1.3, 1.2, 0.7, True)
    yield elu_backward_case((2, 3), -0.5, 2.0, 1.5)
    yield elu_backward_case((2, 3), 1.0, -1.0, -2.0, True)
    plain = elu_backward_case((4, 3), 1.2, 0.8, 1.1)
    yield plain.seen("broadcast gradOutput", gradOutput=((0, 1), 2, 9))
    yield plain.seen("reversed selfOrResult", selfOrResult=((-3, 1), 9, 12))
    yield plain.seen("transposed gradInput", gradInput=((1, 5), 1, 20))
    yield plain.but("gradInput of another dtype", gradInput=dense(FLOAT16, (4, 3)))


def elu_reference(input: Array, alpha: float, scale: float, input_scale: float) -> Array:
    x = input.astype(np.float64)
    return np.where(x > 0, scale * x, alpha * scale * np.expm1(x * input_scale))


def elu_terms(input: Array, alpha: float, scale: float, input_scale: float) -> Terms:
    """expm1 magnifies the rounding of its argument z by |z|·exp(z)."""
    x = input.astype(np.float64)
    z = x * input_scale
    magnified = np.abs(np.expm1(z)) + np.exp(z) * np.minimum(np.abs(z), 1000)  # no 0·inf at z = −inf
    otherwise = product_total(Size.of(alpha), Size.of(scale), Size.computed(np.expm1(z), magnified))
    return Terms(np.where(x > 0, np.abs(scale * x), otherwise))


def elu_case(
    shape: tuple[int, ...] = (3, 4),
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    spec = dense(dtype, shape)
    scalars = {"alpha": number(alpha), "scale": number(scale), "inputScale": number(input_scale)}
    return Case(elu, {"self": spec, **scalars, "out": spec}, device)


def elu_cases() -> Iterator[Case]:
    for dtype in (FLOAT32, FLOAT16, BFLOAT16):
        yield elu_case((3, 5), 1.7, 1.1, 0.9, dtype)
    for shape in ((), (1,), (0,), (2, 0, 3), (1, 2, 1, 3, 1, 2, 1, 2)):
        yield elu_case(shape, 1.3, 1.2, 0.7)
    yield elu_case((2, 3), -0.5, 2.0, 1.5)
    yield elu_case((2, 3), 1.0, -1.0, -2.0)
    plain = elu_case((4, 3), 1.2, 0.8, 1.1)
    yield plain.seen("broadcast self", self=((0, 1), 2, 9))
    yield plain.seen("transposed out", out=((1, 5), 1, 20))
    yield plain.but("out of another dtype", out=dense(FLOAT16, (4, 3)))


@wraps(elu_case)
def elu_in_place_case(*sizes: Any, **more: Any) -> Case:
    return _in_place(elu_case(*sizes, **more))


def elu_in_place_cases() -> Iterator[Case]:
    """Those of ELU, laid out as their outputs are."""
    yield from (_in_place(case) for case in elu_cases() if case.values["out"].dtype is case.values["self"].dtype)


def _in_place(case: Case) -> Case:
    values = {"selfRef": case.values["out"], **{n: case.values[n] for n in ("alpha", "scale", "inputScale")}}
    return Case(elu_, values, case.device, case.note)


OPERATORS = (
    Definition(elu_backward, elu_backward_reference, elu_backward_terms, elu_backward_case, elu_backward_cases),
    Definition(elu, elu_reference, elu_terms, elu_case, elu_cases),
    Definition(elu_, elu_reference, elu_terms, elu_in_place_case, elu_in_place_cases),
)
