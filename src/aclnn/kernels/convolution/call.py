"""What every kernel of a convolution asks of a call, forwards or backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aclnn.base.dtype import FLOAT32, promote
from aclnn.base.rounding import KEEP
from aclnn.base.taps import Window, padding_ends
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.native import jit
from aclnn.kernels.registry import Run

INPUTS = ("gradOutput", "input", "weight")
OUTPUTS = ("gradInput", "gradWeight")
BACKWARD = (*INPUTS, *OUTPUTS, "gradBias")
FORWARD = ("input", "weight", "bias", "output")


class AskedConvolution(NamedTuple):
    """A convolution that is asked for: by itself, or by an operator that is one seen otherwise."""

    call: Call
    names: tuple[str, ...]  # of the tensors that a run is given, in their order
    exact: Callable[[], Run]  # the run that multiplies nothing but what is there

    @property
    def is_gradient(self) -> bool:
        return "gradOutput" in self.call.values


def sides(call: Call) -> tuple[str, str]:
    """The tensors before and after the plain convolution that a call, forwards or backwards, is about."""
    result = "gradOutput" if "gradOutput" in call.values else "output"
    return (result, "input") if call["transposed"] else ("input", result)


def window_of(call: Call) -> Window:
    """The window of that plain convolution."""
    wide, narrow = (call[name].shape[2:] for name in sides(call))
    stride, dilation, kernel = call["stride"], call["dilation"], call["weight"].shape[2:]
    before = tuple(front for front, _ in padding_ends(call["padding"], len(wide)))
    axes = zip(narrow, stride, dilation, kernel, wide, before, strict=True)
    after = tuple((n - 1) * s + d * (k - 1) + 1 - w - p for n, s, d, k, w, p in axes)
    return Window(tuple(stride), tuple(dilation), before, after)


def not_taken(call: Call) -> str | None:
    """Why no kernel for results, gradInput and gradWeight takes a call, if none does."""
    names = FORWARD if "gradOutput" not in call.values else _taking_part(call)
    if not names:
        return "it computes gradInput and gradWeight, of which none is wanted"
    specs: list[TensorSpec] = [call[name] for name in names if call[name] is not None]
    if any(s.dtype not in jit.POINTER for s in specs):
        return "it takes float32, float16 and bfloat16"
    return "a tensor is empty" if any(s.is_empty for s in specs) else None


def _taking_part(call: Call) -> list[str]:
    """The tensors that the wanted ones of gradInput and gradWeight need, and these."""
    needs = {"gradInput": ["gradOutput", "weight"], "gradWeight": ["gradOutput", "input"]}
    return [name for gradient in wanted(call) for name in (*needs[gradient], gradient)]


def wanted(call: Call) -> tuple[str, ...]:
    return tuple(name for name, on in zip(OUTPUTS, call["outputMask"], strict=False) if on)


def rounding_of(call: Call) -> int:
    """How the inputs are rounded first: cubeMathType speaks of float32 only."""
    names = INPUTS if "gradOutput" in call.values else ("input", "weight")
    rounding: int = call["cubeMathType"] if promote(call[n].dtype for n in names) is FLOAT32 else KEEP
    return rounding


def as_gradient(call: Call) -> Call:
    """The call for gradInput that computes the same as a convolution forwards."""
    same = ("weight", "stride", "padding", "dilation", "groups", "cubeMathType")
    computed = promote(call[name].dtype for name in ("input", "weight"))
    values = {name: call[name] for name in same} | {
        "gradOutput": call["input"],
        "input": dense(computed, call["output"].shape),
        "gradInput": call["output"],
        "gradWeight": None,
        "transposed": not call["transposed"],
        "outputMask": (True, False, False),
    }
    return Call(values, call.device)
