"""ELU on compiled loops: float32, float16 and bfloat16, any strides, without a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import ELU_FALLING, ELU_OF_INPUT, ELU_OF_RESULT
from aclnn.kernels.native.threads import LaunchedRun, Work, worth
from aclnn.kernels.registry import Prepared, Refusal, kernel
from aclnn.kernels.shared.strides import blocks, merged

PER_THREAD = 8192  # elements that pay for waking a thread: exponentials of them
PER_THREAD_PLAIN = 20480  # the same without
LEAST_ALPHA = 2.0**-61  # of which 2⁻⁶⁵ times is no subnormal number: see source/elu.py
STREAMED = 2**24  # bytes of output that no cache would keep


@kernel("aclnnEluBackward", "numba", engine="fast")
def elu_backward_fast(call: Call, threads: int) -> Prepared | Refusal:
    dtype, out = call["gradOutput"].dtype, call["gradInput"]
    if dtype not in jit.POINTER or out.dtype is not dtype:
        return Refusal(f"gradOutput is {dtype} and gradInput {out.dtype}; it takes one of float32, float16, bfloat16")
    loop = _loop("backward", out, call["gradOutput"], call["selfOrResult"])
    if loop.name == "backward" and out.size * dtype.itemsize >= STREAMED and _waits_for_memory(call):
        loop = loop._replace(name="backward_streamed", types="i", shape=[dtype.itemsize])
    try:
        entry = jit.load(f"elu.{loop.name}", jit.POINTER[dtype] * 3 + loop.types + "fffi")
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))
    arguments = [0, 0, 0, *loop.shape, *_coefficients(call), _kind(call)]
    team = worth(out.size, PER_THREAD_PLAIN if call["isResult"] else PER_THREAD, threads)

    def work() -> Work:
        return Work(entry, loop.items, loop.chunk, arguments, team, loop.kept)

    return Prepared(lambda: LaunchedRun(work), is_launches=True)


@kernel("aclnnElu", "numba", engine="fast")
def elu_fast(call: Call, threads: int) -> Prepared | Refusal:
    return _forward(call, call["self"], call["out"], threads)


@kernel("aclnnInplaceElu", "numba", engine="fast")
def elu_in_place_fast(call: Call, threads: int) -> Prepared | Refusal:
    return _forward(call, call["selfRef"], call["selfRef"], threads, places=(0, 0))


def _forward(
    call: Call, x: TensorSpec, out: TensorSpec, threads: int, places: Sequence[int] | None = None
) -> Prepared | Refusal:
    if x.dtype not in jit.POINTER or out.dtype is not x.dtype:
        return Refusal(f"the input is {x.dtype} and the output {out.dtype}; it takes one of float32, float16, bfloat16")
    loop = _loop("forward", out, x)
    try:
        entry = jit.load(f"elu.{loop.name}", jit.POINTER[x.dtype] * 2 + loop.types + "fff")
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))
    alpha, scale, input_scale = _scalars(call)
    with np.errstate(all="ignore"):
        arguments = [0, 0, *loop.shape, float(scale), float(input_scale), float(alpha * scale)]
    team = worth(out.size, PER_THREAD, threads)

    def work() -> Work:
        return Work(entry, loop.items, loop.chunk, arguments, team, loop.kept)

    return Prepared(lambda: LaunchedRun(work, places), is_launches=True)


class Loop(NamedTuple):
    """How a kernel goes over the elements: which one it is, and what it must know of their places."""

    name: str
    types: str
    shape: list[int]
    items: int
    chunk: int
    kept: object = None  # the memory that addresses in `shape` point to


def _loop(name: str, out: TensorSpec, *inputs: TensorSpec) -> Loop:
    sizes, strides = merged(out.shape, out.strides, *(spec.strides for spec in inputs))
    if all(s == [1] for s in strides):
        return Loop(name, "", [], out.size, 1024)
    sizes, strides, items = blocks(sizes, strides)
    numbers = [*sizes, *(s for view in strides for s in view)]
    table = (ctypes.c_int64 * len(numbers))(*numbers)
    where = ctypes.addressof(table)
    return Loop(f"{name}_strided", "iII", [len(strides[0]), where, where + 8 * len(sizes)], items, 1, table)


def _waits_for_memory(call: Call) -> bool:
    """Rather than for arithmetic: exponentials take longer than 16 bits take to be read and written."""
    return bool(call["isResult"]) or call["gradOutput"].dtype is FLOAT32


def _kind(call: Call) -> int:
    _, input_scale, scaled_alpha = _coefficients(call)
    if call["isResult"]:
        return ELU_OF_RESULT
    falls = input_scale >= 0 and not 0 < abs(scaled_alpha) < LEAST_ALPHA
    return ELU_FALLING if falls else ELU_OF_INPUT


def _coefficients(call: Call) -> list[float]:
    """scale, inputScale, and the scaled alpha that source.elu asks for, as float32 arithmetic has them."""
    alpha, scale, input_scale = _scalars(call)
    with np.errstate(all="ignore"):
        scaled_alpha = alpha * scale if call["isResult"] else input_scale * alpha * scale
    return [float(scale), float(input_scale), float(scaled_alpha)]


def _scalars(call: Call) -> tuple[np.float32, np.float32, np.float32]:
    alpha, scale, input_scale = (np.float32(call[n].rounded_to(FLOAT32)) for n in ("alpha", "scale", "inputScale"))
    return alpha, scale, input_scale
