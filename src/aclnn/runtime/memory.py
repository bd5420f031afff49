"""The memory a call runs on: fresh outputs, and whether the workspace that was given will do."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, Status, reason
from aclnn.base.tensor import kind_of
from aclnn.contract.model import Op
from aclnn.kernels.native.memory import LINE, address, aligned
from aclnn.runtime import large_outputs
from aclnn.runtime.refusals import parameter

LARGE = 2**19  # bytes of memory that begin a line: vectors that cross two are slower to write, finding one takes 1 µs
_LAST_ADDRESS = 2**63  # of any process


def usable_workspace(op: Op, workspace: Any, needed: int) -> Array | None:
    if needed == 0:
        return None
    if workspace is None:
        check_workspace(op, None, 0, needed)
    try:
        memory = memoryview(workspace)
        if memory.format == "O":  # our bytes would lie where Python keeps references
            raise TypeError("it holds Python objects")
        scratch: Array = np.frombuffer(memory.cast("B"), np.uint8)
    except Exception as error:  # buffers of others may raise anything
        text = f"workspace is {kind_of(workspace)} ({reason(error)}); it must be one block of bytes"
        raise parameter(op, text, "workspace") from error
    if not scratch.flags.writeable:
        raise parameter(op, "workspace is read-only; it must be writable", "workspace")
    check_workspace(op, address(scratch), scratch.size, needed)
    return scratch


def check_workspace(op: Op, start: int | None, size: int, needed: int) -> None:
    """The rule for a workspace, through every door; null is fine where none is needed."""
    if not start:
        if needed:
            text = f"{op.name}: workspace is null; {needed} bytes are needed."
            raise AclnnError(Status.ACLNN_ERR_PARAM_NULLPTR, text, argument="workspace")
    elif size < needed:
        raise parameter(op, f"workspace has {size} bytes but phase 1 asked for {needed}", "workspace")
    elif start + size > _LAST_ADDRESS:
        text = f"workspace has {size} bytes at {start:#x}, which no memory can hold; it must be memory"
        raise parameter(op, text, "workspace")


def new_memory(op: Op, name: str, shape: tuple[int, ...], dtype: DType) -> Array:
    """Fresh memory for a tensor or a workspace, or a code."""
    size, kind = math.prod(shape) * dtype.itemsize, dtype.numpy
    try:
        return np.empty(shape, kind) if size < LARGE else _in_lines(np.empty(size + LINE, np.uint8), shape, kind)
    except (MemoryError, ValueError, OverflowError) as error:  # the last two: more bytes than 64 bits can count
        raise _out_of_memory(op, name, shape, dtype) from error


def output_memory(op: Op, name: str, shape: tuple[int, ...], dtype: DType) -> Array:
    """The same for an output: fresh, or that of an output that nobody holds any more."""
    size = math.prod(shape) * dtype.itemsize
    if size < large_outputs.LARGE:
        return new_memory(op, name, shape, dtype)
    block = large_outputs.take(size + LINE)
    memory = new_memory(op, name, shape, dtype) if block is None else _in_lines(block, shape, dtype.numpy)
    large_outputs.keep(memory.base)
    return memory


def allocator(op: Op, name: str, shape: tuple[int, ...], dtype: DType) -> Callable[[], Array]:
    """What makes the memory of an output again and again."""
    kind = dtype.numpy
    if math.prod(shape) * dtype.itemsize >= LARGE:
        return partial(output_memory, op, name, shape, dtype)

    def allocate() -> Array:
        try:
            return np.empty(shape, kind)
        except MemoryError as error:
            raise _out_of_memory(op, name, shape, dtype) from error

    return allocate


def _out_of_memory(op: Op, name: str, shape: tuple[int, ...], dtype: DType) -> AclnnError:
    text = f"{op.name}: out of memory for {name} of {dtype} {list(shape)}."
    return AclnnError(Status.ACLNN_ERR_RUNTIME_ERROR, text, argument=name)


def _in_lines(block: Array, shape: tuple[int, ...], kind: Any) -> Array:
    where = address(block)
    memory: Array = np.ndarray(shape, kind, block, aligned(where) - where)
    return memory
