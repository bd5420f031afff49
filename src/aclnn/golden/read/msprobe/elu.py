"""elu, selu and celu: one operator with three scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.golden.read.msprobe.arguments import PreparedCall, bound, data, first, result, tensor
from aclnn.golden.read.msprobe.calls import FORWARD, RecordedCall, Unit, Unjudged
from aclnn.golden.read.msprobe.dump import Recorded
from aclnn.golden.texts import Text

_SELU = {"alpha": 1.6732632423543772848170429916717, "scale": 1.0507009873554804934193349852946}
_SIGNATURES: dict[str, dict[str, Any]] = {
    "elu": {"input": ..., "alpha": 1.0, "inplace": False},
    "selu": {"input": ..., "inplace": False},
    "celu": {"input": ..., "alpha": 1.0, "inplace": False},
}
_OF_ATEN = {"input": ..., "alpha": 1.0, "scale": 1.0, "input_scale": 1.0}
_LOST = Unjudged(
    "it was computed in place, and its input is overwritten in the dump", "它是原地计算的，dump中的输入已被覆盖"
)

_COPY = Unjudged(
    "it was computed in place, and then the dump has the gradient of a copy of its result",
    "它是原地计算的，dump中是其输出副本的梯度",
)


def prepared(unit: Unit, attributes: dict[str, Any]) -> PreparedCall:
    call = unit.call
    given = _arguments(call, attributes)
    x, y = tensor(given["input"], "input"), first(call.results(), "output")
    before, after = data(call, x, "input"), data(call, y, "output")
    in_place = bool(given.get("inplace") or call.in_place)
    overwritten = (in_place or call.is_module) and _same_bits(before, after)
    scales = _scales(call, given, before, after, overwritten)
    if unit.direction == FORWARD:
        return _forward(scales, x, y, before, after, overwritten)
    from_result = _backward(call, scales, y, after, True)
    if in_place or overwritten:
        return from_result
    found = _backward(call, scales, x, before, False)
    found.other = from_result if call.is_module else None  # a module may have been in place without a word about it
    return found


def _backward(
    call: RecordedCall, scales: dict[str, float], source: Recorded, values: Array, is_result: bool
) -> PreparedCall:
    g, outputs = first(call.grad_results(), "gradOutput"), call.grad_arguments()
    found = PreparedCall("aclnnEluBackward", {}, {}, (g, source))
    found.given = {"gradOutput": data(call, g, "gradOutput"), **scales, "isResult": is_result, "selfOrResult": values}
    found.targets = {"gradInput": result(call, outputs[0] if outputs else None, "gradInput", found)}
    target = found.targets["gradInput"]
    if is_result and target is not None and _same_bits(found.given["gradOutput"], target) and bool((values < 0).any()):
        raise _COPY
    if is_result:
        found.notes = (Text("judged from its result: it was computed in place", "原地计算，按其输出判断"),)
    return found


def _forward(
    scales: dict[str, float], x: Recorded, y: Recorded, before: Array, after: Array, overwritten: bool
) -> PreparedCall:
    if overwritten and bool((after < 0).any()):
        raise _LOST
    return PreparedCall("aclnnElu", {"self": before, **scales}, {"out": after}, (x,), {"out": y})


def _same_bits(before: Array, after: Array) -> bool:
    return before.shape == after.shape and before.dtype == after.dtype and before.tobytes() == after.tobytes()


def _arguments(call: RecordedCall, attributes: dict[str, Any]) -> dict[str, Any]:
    if not call.is_module:
        aten = call.kind == "elu" and call.name.startswith("Aten.")
        return bound(_OF_ATEN if aten else _SIGNATURES[call.kind], call)
    listed, named = call.arguments()
    found = listed[0] if listed else next(iter(named.values()), None)
    return {"input": found, "alpha": attributes.get("alpha"), "inplace": attributes.get("inplace", False)}


def _scales(
    call: RecordedCall, given: dict[str, Any], before: Array, after: Array, overwritten: bool
) -> dict[str, float]:
    kind, alpha = call.kind.lower(), given.get("alpha")
    if kind == "selu":
        return {**_SELU, "inputScale": 1.0}
    if alpha is None:
        alpha = _alpha_of(kind, before, after, overwritten)
    if not isinstance(alpha, (int, float)) or (kind == "celu" and alpha == 0):
        raise Unjudged(f"its alpha is {alpha!r}, not a number", f"其alpha是{alpha!r}，不是数")
    if kind == "celu":
        return {"alpha": float(alpha), "scale": 1.0, "inputScale": 1.0 / alpha}
    return {
        "alpha": float(alpha),
        "scale": float(given.get("scale", 1.0)),
        "inputScale": float(given.get("input_scale", 1.0)),
    }


def _alpha_of(kind: str, before: Array, after: Array, overwritten: bool) -> float:
    """The alpha of a module, which its dump does not say: the one that its forward shows."""
    if overwritten:
        raise Unjudged(
            "its alpha is not in the dump, and its input is overwritten", "dump中没有alpha，且其输入已被覆盖"
        )
    x, y = before.reshape(-1).astype(np.float64), after.reshape(-1).astype(np.float64)
    candidates = [1.0]
    deep = np.argsort(x)[:1]  # where the exponential is spent, the result is −alpha
    if deep.size and x[deep[0]] < 0:
        lowest = int(deep[0])
        guess = y[lowest] / np.expm1(x[lowest]) if kind == "elu" else _celu_alpha(x[lowest], y[lowest])
        candidates += [float(f"{guess:.{digits}g}") for digits in (1, 2, 3, 4)] if np.isfinite(guess) else []
    fitting = {alpha for alpha in candidates if alpha > 0 and _reproduces(kind, alpha, x, y, after)}
    if len(fitting) != 1:
        raise Unjudged(
            "its alpha is not in the dump, and its forward does not show it; an attributes file may say it",
            "dump中没有alpha，且无法由其正向结果确定；可用属性文件给出",
        )
    return fitting.pop()


def _celu_alpha(x: float, y: float) -> float:
    """Solves y = alpha·(exp(x / alpha) − 1) for alpha by halving."""
    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if middle * np.expm1(x / middle) > y else (low, middle)
    return low


def _reproduces(kind: str, alpha: float, x: Array, y: Array, after: Array) -> bool:
    negative = alpha * np.expm1(x / alpha if kind == "celu" else x)
    expected = np.where(x > 0, x, negative)
    unit = float(np.finfo(np.float16).eps) if after.dtype.itemsize == 2 and after.dtype.kind == "f" else 2.0**-20
    unit = 2.0**-7 if after.dtype.kind == "V" else unit
    return bool(negative[x <= 0].size) and bool(np.all(np.abs(y - expected) <= 2 * unit * (np.abs(expected) + 1e-30)))
