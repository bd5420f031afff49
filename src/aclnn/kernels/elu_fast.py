"""ELU on compiled loops: float32, float16 and bfloat16, any strides, without a copy."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.contract.call import Call
from aclnn.kernels import jit
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.strides import address, merged, rows_of
from aclnn.kernels.threads import Work, worth

FEW = 2048  # elements: below, whole-array numpy takes a few microseconds, and no compiler has to be loaded
PER_THREAD = 16384  # elements that pay for waking a thread
STREAMED = 2**24  # bytes of output that no cache would keep


def too_small(call: Call) -> str | None:
    size = call["gradOutput"].size
    return f"{size} elements are fewer than {FEW}" if size < FEW else None


@kernel("aclnnEluBackward", "numba", engine="fast", too_small=too_small)
def elu_backward_fast(call: Call, threads: int) -> Prepared | Refusal:
    dtype, out = call["gradOutput"].dtype, call["gradInput"]
    if dtype not in jit.POINTER or out.dtype is not dtype:
        return Refusal(f"gradOutput is {dtype} and gradInput {out.dtype}; it takes one of float32, float16, bfloat16")
    walk = _walk(call)
    try:
        entry = jit.load(f"elu.{walk.name}", jit.POINTER[dtype] * 3 + walk.types + "fffi")
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))
    arguments = [0, 0, 0, *walk.shape, *_coefficients(call), int(call["isResult"])]
    team = worth(out.size, PER_THREAD, threads)

    def instantiate() -> Run:
        work = Work(entry, walk.items, walk.chunk, arguments, team, walk.kept)

        def run(workspace: Array | None, grad_output: Array, self_or_result: Array, grad_input: Array) -> None:
            work.point(0, address(grad_output), address(self_or_result), address(grad_input))
            work.run()

        return run

    return Prepared(instantiate)


class Walk(NamedTuple):
    """How a kernel goes over the elements: which one it is, and what it must know of their places."""

    name: str
    types: str
    shape: list[int]
    items: int
    chunk: int
    kept: object = None  # the memory that addresses in `shape` point to


def _walk(call: Call) -> Walk:
    g, x, out = call["gradOutput"], call["selfOrResult"], call["gradInput"]
    sizes, steps = merged(out.shape, out.strides, g.strides, x.strides)
    if any(s != [1] for s in steps):
        table = (ctypes.c_int64 * (4 * len(sizes)))(*sizes, *(s for view in steps for s in view))
        where = ctypes.addressof(table)
        return Walk("backward_strided", "iII", [len(sizes), where, where + 8 * len(sizes)], rows_of(sizes), 1, table)
    if out.size * out.dtype.itemsize >= STREAMED:
        return Walk("backward_streamed", "i", [out.dtype.itemsize], out.size, 1024)
    return Walk("backward", "", [], out.size, 1024)


def _coefficients(call: Call) -> list[float]:
    """scale, inputScale, and the product that nopython.elu asks for, as float32 arithmetic has them."""
    alpha, scale, input_scale = (np.float32(call[n].rounded_to(FLOAT32)) for n in ("alpha", "scale", "inputScale"))
    with np.errstate(all="ignore"):
        product = alpha * scale if call["isResult"] else input_scale * alpha * scale
    return [float(scale), float(input_scale), float(product)]
