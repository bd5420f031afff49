"""What every kernel of a convolution asks of a call, forwards or backwards."""

from __future__ import annotations

from aclnn.base.dtype import FLOAT32, promote
from aclnn.base.rounding import KEEP
from aclnn.base.taps import Window, padding_ends
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.native import jit

FEW = 300_000  # products of a gradient: below, numpy takes less than loading native code
INPUTS = ("gradOutput", "input", "weight")
OUTPUTS = ("gradInput", "gradWeight")


def window_of(call: Call) -> Window:
    """The window of the plain convolution that the call is the gradient of."""
    wide, narrow = (call[n].shape[2:] for n in ("input", "gradOutput"))
    if call["transposed"]:
        wide, narrow = narrow, wide
    stride, dilation, kernel = call["stride"], call["dilation"], call["weight"].shape[2:]
    before = tuple(front for front, _ in padding_ends(call["padding"], len(wide)))
    axes = zip(narrow, stride, dilation, kernel, wide, before, strict=True)
    after = tuple((n - 1) * s + d * (k - 1) + 1 - w - p for n, s, d, k, w, p in axes)
    return Window(tuple(stride), tuple(dilation), before, after)


def too_small(call: Call) -> str | None:
    """Why a call is not worth loading native code, if it is not."""
    result = "gradOutput" if "gradOutput" in call.values else "output"
    narrow = call["input" if call["transposed"] else result]
    products = narrow.size * call["weight"].size // max(call["weight"].shape[0], 1)
    return f"{products} products are fewer than {FEW}" if products < FEW else None


def not_taken(call: Call) -> str | None:
    """Why no kernel for gradInput and gradWeight takes a call, if none does."""
    gradients = wanted(call)
    if not gradients:
        return "it computes gradInput and gradWeight, of which none is wanted"
    return not_taken_of([call[n] for n in (*INPUTS, *gradients)])


def forward_not_taken(call: Call) -> str | None:
    """The same for a convolution forwards."""
    return not_taken_of([call[name] for name in ("input", "weight", "bias", "output") if call[name] is not None])


def not_taken_of(specs: list[TensorSpec]) -> str | None:
    if any(s.dtype not in jit.POINTER for s in specs):
        return "it takes float32, float16 and bfloat16"
    return "a tensor is empty" if any(s.is_empty for s in specs) else None


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
