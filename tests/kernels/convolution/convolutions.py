"""Convolutions that tests of several kernels draw, and memory that ends where it ends."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.geometry import Array
from aclnn.contract.cases import Case, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.convolution import convolution_backward_case

PAGE = mmap.PAGESIZE
SPECIAL = [np.nan, np.inf, -np.inf]


def served(case: Case) -> bool:
    """Whether the fast engine takes a case: all but empty ones, float64, and those that want nothing."""
    names = ("gradOutput", "input", "weight")
    specs = [case.values[n] for n in names]
    return all(not s.is_empty and s.dtype.name != "float64" for s in specs) and any(case.values["outputMask"])


@st.composite
def shapes(draw: st.DrawFn, dtypes: tuple[DType, ...] = (FLOAT32, FLOAT32, FLOAT16, BFLOAT16)) -> Case:
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
            dtype=draw(st.sampled_from(dtypes)),
            output_mask=draw(st.sampled_from([(True, True, True), (True, False, False), (False, True, True)])),
            device=CPU,
        )
    except ValueError:  # no room for the kernel
        assume(False)
        raise


class Fenced:
    """Float32 elements that end where no memory is: one step further ends the process."""

    def __init__(self, values: Array):
        size = -(-values.nbytes // PAGE) * PAGE
        self.memory = mmap.mmap(-1, size + PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        assert protect(ctypes.c_void_p(start + size), ctypes.c_size_t(PAGE), 0) == 0
        self.array = np.frombuffer(self.memory, np.float32, values.size, size - values.nbytes).reshape(values.shape)
        self.array[:] = values


def assert_judged(case: Case, filled: dict[str, Any]) -> None:
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"
