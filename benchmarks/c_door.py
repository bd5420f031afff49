"""The C door as a provider: operators called by compiled code, both phases and a synchronization in every call."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.base.format import Format
from aclnn.base.scalar import Scalar
from aclnn.base.tensor import TensorSpec
from aclnn.capi import interpreter, prefix
from aclnn.capi.build import build
from aclnn.contract.model import Arg
from benchmarks.measure import Call, Several

SOURCE = Path(__file__).parent / "c" / "loop.cpp"
LEAST = 3e-3  # seconds that calls in a row last: a thread is started for them


def is_here() -> bool:
    """Whether there is what the C door needs."""
    return sys.platform == "linux" and shutil.which("g++") is not None and interpreter.libpython() is not None


@cache
def _library() -> ctypes.CDLL:
    """The loop, compiled as a user would compile it; it brings the library of the operators."""
    home = build()
    flags = [*prefix.compile_flags(home), *prefix.link_flags(home)]
    with tempfile.TemporaryDirectory(prefix="aclnn-bench-") as folder:
        made = Path(folder) / "loop.so"
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", str(SOURCE), *flags, "-o", str(made)], check=True)
        library = ctypes.CDLL(str(made))
    for kind in ("Tensor", "TensorList", "Scalar", "IntArray", "BoolArray"):
        getattr(library, f"aclCreate{kind}").restype = ctypes.c_void_p
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


def call(operator: Any, arguments: tuple[Any, ...], **more: Any) -> Call:
    """The operator on memory of its own, through a stream of its own."""
    library, executor = _library(), operator.plan(*arguments, **more, repeatable=True)
    op, values = executor.plan.op, executor.plan.call
    memory = dict(zip((a.name for a in op.tensors), executor._views, strict=True))
    words = (ctypes.c_int64 * len(op.args))(*(_word(a, values[a.name], memory.get(a.name)) for a in op.args))
    workspace, stream = np.empty(executor.workspace_size + 64, np.uint8), ctypes.c_void_p()
    library.aclrtSetDevice(0)
    if library.aclrtCreateStream(ctypes.byref(stream)) != 0:
        raise RuntimeError(library.aclGetRecentErrMsg().decode())
    function, room = getattr(library, f"calls_{op.name}"), ctypes.c_uint64(workspace.size)
    place = ctypes.c_void_p(workspace.ctypes.data)

    def calls(times: int) -> object:
        if function(words, place, room, stream, ctypes.c_int64(times)) != 0:
            raise RuntimeError(f"{op.name} failed from C; phase 1 and 2 said why on their own thread")
        return executor, workspace  # what the words point to lives as long as this function

    calls(1)
    begun = time.perf_counter()
    calls(1)
    return Several(calls, max(1, int(LEAST / (time.perf_counter() - begun))))


def _word(arg: Arg, value: Any, memory: Any) -> int:
    """An argument as 64 bits: a handle, a number, or the bits of one."""
    if value is None:
        return 0
    if arg.kind == "tensor":
        return _tensor(arg, value, memory)
    if arg.kind == "tensor_list":
        handles = [_tensor(arg, spec, array) for spec, array in zip(value, memory, strict=True)]
        return _made("TensorList", (ctypes.c_void_p * len(handles))(*handles), ctypes.c_uint64(len(handles)))
    if arg.kind in ("int_array", "bool_array"):
        kind, element = ("IntArray", ctypes.c_int64) if arg.kind == "int_array" else ("BoolArray", ctypes.c_bool)
        return _made(kind, (element * len(value))(*value), ctypes.c_uint64(len(value)))
    if isinstance(value, Scalar):
        return _made("Scalar", np.array(value.value).astype(value.dtype.numpy).tobytes(), value.dtype.number)
    return int(struct.unpack("=q", struct.pack("=d", value))[0]) if arg.kind == "double" else int(value)


def _tensor(arg: Arg, spec: TensorSpec, array: np.ndarray) -> int:
    format_ = arg.default_format(spec.rank) if spec.format is Format.UNDEFINED else spec.format
    sizes, strides = ((ctypes.c_int64 * spec.rank)(*values) for values in (spec.shape, spec.strides))
    rank, where = ctypes.c_uint64(spec.rank), ctypes.c_void_p(array.ctypes.data)
    view = sizes, rank, spec.dtype.number, strides, ctypes.c_int64(0), int(format_)
    return _made("Tensor", *view, sizes, rank, where)


def _made(kind: str, *given: Any) -> int:
    library = _library()
    handle = getattr(library, f"aclCreate{kind}")(*given)
    if handle is None:
        raise RuntimeError(library.aclGetRecentErrMsg().decode())
    return int(handle)
