"""oneDNN through its C interface, version 3: the library, layouts of memory, and primitives.

Primitives are immutable and may be shared between threads. Their scratch memory is the caller's: one that owns its
scratch crashes when another thread than its maker executes it. kernels.program runs them.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from importlib.metadata import PackageNotFoundError, files
from typing import Any

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.run_once import kept, once
from aclnn.base.taps import Window
from aclnn.kernels.native import isa, threads

WHEEL = "onednn-cpu-gomp"
OLDEST, BEYOND = (3, 2), (4, 0)

SRC, DST, WEIGHTS, BIAS = 1, 17, 33, 41  # execution arguments
SCRATCHPAD, DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 80, 129, 145, 161
_QUERIES = {SRC: 129, DIFF_SRC: 130, WEIGHTS: 131, DIFF_WEIGHTS: 132, DST: 133, DIFF_DST: 134, SCRATCHPAD: 136}
_DTYPES = {FLOAT16: 1, BFLOAT16: 2, FLOAT32: 3}
_STATUSES = ("success", "out of memory", "invalid arguments", "unimplemented", "last implementation reached")
_RUNTIMES = {0: "none", 1: "sequential", 2: "OpenMP", 4: "TBB", 8: "a thread pool", 512: "SYCL"}
IN_ORDER, _CPU, _ANY_TAG, _USER_SCRATCH, _STRICT = 1, 1, 1, 1, 0
_FORWARD_TRAINING, _DIRECT, _IMPLEMENTATION, _AVX512, _AMX = 64, 1, 8, 0x20, 0xE00


# Implementations of 3.2 with AMX, alone or as parts of others. Sums are wrong where strides are longer than kernels
# and in some other shapes, gradients are not written where no tap lies, and where nothing but padding is met the
# process ends.
WRONG = ("brgconv:avx512_core_amx", "brgconv_strided:avx512_core_amx")


class OneDnnError(Exception):
    """oneDNN is absent, or says no."""


class _Version(ctypes.Structure):
    _fields_ = (
        *((name, c_int) for name in ("major", "minor", "patch")),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


_SIGNATURES: dict[str, Sequence[Any]] = {
    "engine_create": (POINTER(c_void_p), c_int, c_size_t),
    "stream_create": (POINTER(c_void_p), c_void_p, c_uint),
    "stream_destroy": (c_void_p,),
    "memory_desc_create_with_tag": (POINTER(c_void_p), c_int, POINTER(c_int64), c_int, c_int),
    "memory_desc_create_with_strides": (POINTER(c_void_p), c_int, POINTER(c_int64), c_int, POINTER(c_int64)),
    "memory_desc_clone": (POINTER(c_void_p), c_void_p),
    "memory_desc_destroy": (c_void_p,),
    "memory_create": (POINTER(c_void_p), c_void_p, c_void_p, c_void_p),
    "memory_set_data_handle": (c_void_p, c_void_p),
    "memory_destroy": (c_void_p,),
    "primitive_attr_create": (POINTER(c_void_p),),
    "primitive_attr_set_scratchpad_mode": (c_void_p, c_int),
    "primitive_attr_set_fpmath_mode": (c_void_p, c_int),
    "primitive_desc_query": (c_void_p, c_int, c_int, c_void_p),
    "primitive_desc_destroy": (c_void_p,),
    "primitive_desc_next_impl": (c_void_p,),
    "primitive_create": (POINTER(c_void_p), c_void_p),
    "primitive_execute": (c_void_p, c_void_p, c_int, c_void_p),
    "primitive_destroy": (c_void_p,),
    "reorder_primitive_desc_create": (POINTER(c_void_p), *[c_void_p] * 5),
    "convolution_forward_primitive_desc_create": (POINTER(c_void_p), c_void_p, c_int, c_int, *[c_void_p] * 9),
    "convolution_backward_data_primitive_desc_create": (POINTER(c_void_p), c_void_p, c_int, *[c_void_p] * 9),
    "convolution_backward_weights_primitive_desc_create": (POINTER(c_void_p), c_void_p, c_int, *[c_void_p] * 10),
}


class Library:
    """The loaded library, with an engine and the attributes that all our primitives have."""

    def __init__(self, path: str):
        self.path = path
        try:
            self.functions = ctypes.CDLL(path)
            self._declare()
        except (OSError, AttributeError) as error:
            raise OneDnnError(f"oneDNN cannot be loaded ({error})") from error
        self._check()
        limit = isa.limit()
        if limit is not None:
            self.check(self.functions.dnnl_set_max_cpu_isa(limit.of_onednn))  # before anything asks for the processor
        self.limits = threads.Limits.of(self.functions)
        processor = self.functions.dnnl_get_effective_cpu_isa()  # asked now: a forked child must not call oneDNN
        self.has_avx512 = bool(processor & _AVX512)
        self.has_amx = processor & _AMX == _AMX
        self.engine = self.made("engine_create", _CPU, 0)
        self.attributes = self._attributes()

    def _attributes(self) -> int:
        """Scratch is the caller's; and float32 is float32, whatever environment variables say of bfloat16."""
        made = self.made("primitive_attr_create")
        self.check(self.functions.dnnl_primitive_attr_set_scratchpad_mode(made, _USER_SCRATCH))
        self.check(self.functions.dnnl_primitive_attr_set_fpmath_mode(made, _STRICT))
        return made

    def _declare(self) -> None:
        for name, arguments in _SIGNATURES.items():
            getattr(self.functions, f"dnnl_{name}").argtypes = arguments
        self.functions.dnnl_version.restype = POINTER(_Version)
        self.functions.dnnl_memory_desc_get_size.argtypes = [c_void_p]
        self.functions.dnnl_memory_desc_get_size.restype = c_size_t
        self.functions.dnnl_memory_desc_equal.argtypes = [c_void_p, c_void_p]
        self.functions.dnnl_primitive_desc_query_md.argtypes = [c_void_p, c_int, c_int]
        self.functions.dnnl_primitive_desc_query_md.restype = c_void_p

    def _check(self) -> None:
        found = self.functions.dnnl_version().contents
        self.version = (found.major, found.minor, found.patch)
        if not OLDEST <= self.version < BEYOND:
            shown = ".".join(map(str, self.version))
            raise OneDnnError(f"oneDNN {shown} at {self.path} is not one of 3.2 … 3.x")
        if found.cpu_runtime not in (1, 2):
            kind = _RUNTIMES.get(found.cpu_runtime, str(found.cpu_runtime))
            raise OneDnnError(f"oneDNN at {self.path} runs on {kind}; it must be OpenMP or sequential")

    def check(self, status: int) -> None:
        if status:
            said = _STATUSES[status] if status < len(_STATUSES) else f"status {status}"
            raise OneDnnError(f"oneDNN says {said}")

    def made(self, function: str, *arguments: Any) -> int:
        """The handle that a create function gives."""
        handle = c_void_p()
        self.check(getattr(self.functions, f"dnnl_{function}")(byref(handle), *arguments))
        return handle.value or 0

    def owned(self, owner: object, kind: str, handle: int) -> int:
        """The handle, destroyed with its owner."""
        weakref.finalize(owner, self._destroy, kind, handle).atexit = False
        return handle

    def _destroy(self, kind: str, handle: int) -> None:
        if not threads.forked():
            getattr(self.functions, f"dnnl_{kind}_destroy")(handle)


@once
def _found() -> Library | str:
    """The library, or why there is none."""
    try:
        return Library(os.environ.get("ACLNN_ONEDNN") or _of_the_wheel() or "libdnnl.so.3")
    except OneDnnError as error:
        return str(error)


def installed() -> Library | None:
    """oneDNN if it is there, whether or not it can be used after a fork."""
    found = _found()
    return None if isinstance(found, str) else found


def library() -> Library:
    """oneDNN; raises OneDnnError if it cannot be used in this process."""
    found = _found()
    if isinstance(found, str):
        raise OneDnnError(found)
    if threads.forked():
        raise OneDnnError("a fork took oneDNN's threads away")
    return found


def _of_the_wheel() -> str | None:
    try:
        for file in files(WHEEL) or ():
            if file.name == "libdnnl.so.3":
                return str(file.locate())
    except PackageNotFoundError:
        pass
    return None


class Layout:
    """How the elements of a tensor lie in memory: a memory descriptor."""

    def __init__(self, handle: int):
        self.handle = library().owned(self, "memory_desc", handle)

    @property
    def size(self) -> int:
        """Bytes, padding included."""
        return int(library().functions.dnnl_memory_desc_get_size(self.handle))

    def same_as(self, other: Layout) -> bool:
        return bool(library().functions.dnnl_memory_desc_equal(self.handle, other.handle))


def any_layout(dtype: DType, dims: Sequence[int]) -> Layout:
    """Left to the primitive."""
    return Layout(library().made("memory_desc_create_with_tag", len(dims), _numbers(dims), _DTYPES[dtype], _ANY_TAG))


def strided(dtype: DType, dims: Sequence[int], strides: Sequence[int]) -> Layout:
    """As the strides, in elements, say."""
    arguments = len(dims), _numbers(dims), _DTYPES[dtype], _numbers(strides)
    return Layout(library().made("memory_desc_create_with_strides", *arguments))


def _numbers(values: Sequence[int]) -> Any:
    return (c_int64 * 12)(*values)


class Primitive:
    """A computation with fixed shapes, layouts and thread count, by the first of its implementations that is right."""

    def __init__(self, function: str, *arguments: Any):
        lib = library()
        self.description = lib.owned(self, "primitive_desc", lib.made(f"{function}_primitive_desc_create", *arguments))
        while any(name in self.implementation for name in WRONG):
            lib.check(lib.functions.dnnl_primitive_desc_next_impl(self.description))
        self.handle = lib.owned(self, "primitive", lib.made("primitive_create", self.description))
        self.scratch = self.layout(SCRATCHPAD)

    def layout(self, which: int) -> Layout:
        """What an execution argument must look like."""
        lib = library()
        queried = lib.functions.dnnl_primitive_desc_query_md(self.description, _QUERIES[which], 0)
        return Layout(lib.made("memory_desc_clone", queried))

    @property
    def implementation(self) -> str:
        name = c_char_p()
        library().functions.dnnl_primitive_desc_query(self.description, _IMPLEMENTATION, 0, byref(name))
        return (name.value or b"").decode()


def reorder(source: Layout, target: Layout) -> Primitive:
    lib = library()
    return Primitive("reorder", source.handle, lib.engine, target.handle, lib.engine, lib.attributes)


class Convolution:
    """The three directions of y = conv(x, w) + bias, given layouts of x, w, y and, if there is one, the bias."""

    def __init__(self, x: Layout, w: Layout, y: Layout, window: Window, bias: Layout | None = None):
        gaps = [d - 1 for d in window.dilation]  # as oneDNN counts: a dilation of 0 is a dense kernel
        self._window = tuple(map(_numbers, (window.stride, gaps, window.padding_before, window.padding_after)))
        self._x, self._w, self._y, self._bias = x, w, y, bias

    @kept
    def forward(self) -> Primitive:
        lib = library()
        bias = None if self._bias is None else self._bias.handle
        given = self._x.handle, self._w.handle, bias, self._y.handle, *self._window, lib.attributes
        return Primitive("convolution_forward", lib.engine, _FORWARD_TRAINING, _DIRECT, *given)

    @kept
    def backward_data(self) -> Primitive:
        lib, hint = library(), self.forward.description
        given = self._x.handle, self._w.handle, self._y.handle, *self._window, hint, lib.attributes
        return Primitive("convolution_backward_data", lib.engine, _DIRECT, *given)

    @kept
    def backward_weights(self) -> Primitive:
        lib, hint = library(), self.forward.description
        given = self._x.handle, self._w.handle, None, self._y.handle, *self._window, hint, lib.attributes
        return Primitive("convolution_backward_weights", lib.engine, _DIRECT, *given)
