"""Convolutions, plain and transposed, as functions and as modules, and conv_tbc."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.golden.read.msprobe.arguments import (
    PreparedCall,
    bound,
    computed_in,
    data,
    first,
    narrowed,
    result,
    rounded,
    tensor,
)
from aclnn.golden.read.msprobe.calls import FORWARD, RecordedCall, Unit, Unjudged
from aclnn.golden.read.msprobe.dump import Recorded
from aclnn.golden.read.msprobe.search import attributes_of
from aclnn.golden.texts import Text

_PLAIN = {"input": ..., "weight": ..., "bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
_TRANSPOSED = {"input": ..., "weight": ..., "bias": None, "stride": 1, "padding": 0}
_TRANSPOSED |= {"output_padding": 0, "groups": 1, "dilation": 1}
_TBC = {"input": ..., "weight": ..., "bias": ..., "pad": 0}
_OUTPUTS = ("gradInput", "gradWeight", "gradBias")


class Geometry:
    """A convolution in our operator's terms, with its tensors."""

    def __init__(self, call: RecordedCall, given: dict[str, Any]):
        self.call = call
        self.x, self.weight = tensor(given["input"], "input"), tensor(given["weight"], "weight")
        self.bias = given["bias"] if isinstance(given.get("bias"), Recorded) else None
        self.y = first(call.results(), "output")
        self.transposed = "transpose" in call.kind.lower()
        self.axes = len(self.weight.shape) - 2
        self.unbatched = len(self.x.shape) == self.axes + 1
        tensors = [t for t in (self.x, self.weight, self.bias) if t is not None]
        self.dtype = computed_in(tensors, self.y)
        self.stride, self.dilation = (self.per_axis(given[n], n) for n in ("stride", "dilation"))
        self.output_padding = self.per_axis(given.get("output_padding", 0), "output_padding")
        self.groups = given["groups"]
        self.after = [0] * self.axes  # what padding "same" adds behind, beyond what it adds in front
        self.padding = self.ends(given["padding"])

    def per_axis(self, value: Any, name: str) -> tuple[int, ...]:
        listed = value if isinstance(value, list) else [value]
        listed = listed * self.axes if len(listed) == 1 else listed
        if len(listed) != self.axes or not all(type(n) is int for n in listed):
            raise Unjudged(f"its {name} is {value!r}", f"其{name}是{value!r}")
        return tuple(listed)

    def ends(self, padding: Any) -> tuple[int, ...]:
        if padding == "valid":
            return (0,) * self.axes
        if padding != "same":
            return self.per_axis(padding, "padding")
        whole = [d * (k - 1) for d, k in zip(self.dilation, self.weight.shape[2:], strict=True)]
        self.after = [n % 2 for n in whole]
        return tuple(n // 2 for n in whole)

    def attributes(self) -> dict[str, Any]:
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "transposed": self.transposed,
            "outputPadding": self.output_padding,
            "groups": self.groups,
            "cubeMathType": 0,
        }

    def batched(self, array: Array | None) -> Array | None:
        return array[None] if array is not None and self.unbatched else array

    def input(self) -> Array:
        found = self.batched(rounded(data(self.call, self.x, "input"), self.dtype))
        assert found is not None
        if any(self.after):  # torch pads such an input itself before it convolves
            found = np.pad(found, [(0, 0), (0, 0), *((0, n) for n in self.after)])
        return found

    def kernel(self) -> Array:
        return rounded(data(self.call, self.weight, "weight"), self.dtype)

    def gradient(self) -> Recorded:
        return first(self.call.grad_results(), "gradOutput")

    def of_backward(self, mask: tuple[bool, ...]) -> dict[str, Any]:
        """The arguments of the operator for those gradients that the mask asks for."""
        grad = self.batched(rounded(data(self.call, self.gradient(), "gradOutput"), self.dtype))
        channels = self.weight.shape[1] * self.groups if self.transposed else self.weight.shape[0]
        given = {"gradOutput": grad, "input": self.input(), "weight": self.kernel(), "biasSizes": (channels,)}
        return {**given, **self.attributes(), "outputMask": mask}


def of(call: RecordedCall, attributes: dict[str, Any]) -> Geometry:
    if not call.is_module:
        return Geometry(call, bound(_TRANSPOSED if "transpose" in call.kind else _PLAIN, call))
    listed, named = call.arguments()
    parameters = call.parameters()
    given = {"input": listed[0] if listed else named.get("input"), **parameters}
    given = {"weight": None, "bias": None, **given}
    if attributes.get("padding_mode", "zeros") != "zeros":
        raise Unjudged("its padding is not of zeros, so its input is not what it convolved", "其填充方式不是补零")
    return Geometry(call, {**given, **attributes_of(call, given, attributes)})


def prepared(unit: Unit, attributes: dict[str, Any]) -> PreparedCall:
    if unit.call.kind == "conv_tbc":
        return _conv_tbc(unit)
    found = of(unit.call, attributes)
    return _forward(found) if unit.direction == FORWARD else backward(found)


def _forward(found: Geometry) -> PreparedCall:
    call = found.call
    inputs = tuple(t for t in (found.x, found.weight, found.bias) if t is not None)
    bias = None if found.bias is None else rounded(data(call, found.bias, "bias"), found.dtype)
    given = {"input": found.input(), "weight": found.kernel(), "bias": bias, **found.attributes()}
    made = PreparedCall("aclnnConvolution", given, {}, inputs)
    y = found.batched(result(call, found.y, "output", made))
    made.targets = {"output": narrowed(y, found.dtype, "output")}
    made.notes = _autocast(found.dtype, inputs)
    return made


def backward(found: Geometry) -> PreparedCall:
    """The gradients of a call; of a module only that of its input stands here."""
    g = found.gradient()
    if found.unbatched and not found.call.is_module:
        raise Unjudged(
            "its input has no batch, and then the dump has the gradient of a copy",
            "其输入没有batch维，dump中是其副本的梯度",
        )
    inputs = (g, found.x, found.weight)
    made = PreparedCall("aclnnConvolutionBackward", {}, {}, inputs, notes=_autocast(found.dtype, inputs[1:]))
    values = _gradients(found, made)
    mask = tuple(values.get(name) is not None or name in made.absent for name in _OUTPUTS)
    made.given = found.of_backward(mask)
    made.targets = {name: narrowed(values.get(name), found.dtype, name) for name in _OUTPUTS}
    return made


def _gradients(found: Geometry, made: PreparedCall) -> dict[str, Array | None]:
    """The gradients that the dump has of arguments that asked for one; what is missing is noted."""
    call, listed = found.call, found.call.grad_arguments()
    arguments = (found.x,) if call.is_module else (found.x, found.weight, found.bias)
    values: dict[str, Array | None] = {}
    for i, (name, argument) in enumerate(zip(_OUTPUTS, arguments, strict=False)):
        given = listed[i] if i < len(listed) else None
        if given is None and (argument is None or not argument.requires_grad):
            continue
        value = result(call, given, name, made)
        wanted = argument.shape if argument is not None else ()
        if name == "gradInput":
            value, wanted = found.batched(value), found.input().shape
        if value is not None and value.shape != wanted:
            shapes = f"{list(value.shape)} … {list(wanted)}"
            made.absent[name] = Text(f"its shape is not that of its argument ({shapes})", f"形状与参数不符（{shapes}）")
            value = None
        values[name] = value
    if not any(v is not None for v in values.values()):
        raise Unjudged("none of its gradients is in the dump", "dump中没有它的任何梯度")
    return values


def _autocast(dtype: DType, inputs: tuple[Recorded, ...]) -> tuple[Text, ...]:
    if all(t.dtype is dtype for t in inputs):
        return ()
    return (Text(f"autocast: its inputs were rounded to {dtype}", f"autocast：输入被舍入为{dtype}"),)


def _conv_tbc(unit: Unit) -> PreparedCall:
    call = unit.call
    given = bound(_TBC, call)
    tensors = {name: tensor(given[name], name) for name in ("input", "weight", "bias")}
    y = first(call.results(), "output")
    dtype = computed_in(list(tensors.values()), y)
    x, weight, bias = (rounded(data(call, t, n), dtype) for n, t in tensors.items())
    attributes = {"pad": given["pad"], "cubeMathType": 0}
    if unit.direction == FORWARD:
        made = PreparedCall(
            "aclnnConvTbc", {"self": x, "weight": weight, "bias": bias, **attributes}, {}, (*tensors.values(),)
        )
        made.targets = {"output": narrowed(result(call, y, "output", made), dtype, "output")}
        return made
    g, listed = first(call.grad_results(), "gradOutput"), call.grad_arguments()
    made = PreparedCall("aclnnConvTbcBackward", {}, {}, (g, *tensors.values()))
    grad = rounded(data(call, g, "gradOutput"), dtype)
    made.given = {"self": grad, "input": x, "weight": weight, "bias": bias, **attributes}
    for i, (name, argument) in enumerate(zip(_OUTPUTS, tensors.values(), strict=True)):
        one = listed[i] if i < len(listed) else None
        wanted = one is not None or argument.requires_grad
        made.targets[name] = narrowed(result(call, one, name, made), dtype, name) if wanted else None
    return made
