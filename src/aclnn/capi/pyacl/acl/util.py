"""Memory of Python objects by address, and threads for callbacks."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from ._library import FAILURE, INVALID_PARAM, SUCCESS, integer

_LIMIT = 10  # seconds that stop_thread waits
_threads: dict[int, threading.Thread] = {}


def numpy_to_ptr(array: Any) -> int:
    """The address of a contiguous array, which must stay alive as long as the address is used."""
    flags = getattr(array, "flags", None)
    if flags is None or not hasattr(array, "ctypes"):
        raise TypeError(f"numpy_to_ptr takes a numpy array, not {type(array).__name__}")
    if not flags["C_CONTIGUOUS"]:
        raise ValueError("numpy_to_ptr takes a contiguous array; numpy.ascontiguousarray makes one")
    return int(array.ctypes.data)


numpy_contiguous_to_ptr = numpy_to_ptr


def ptr_to_numpy(ptr: int, shape: Any, dtype: int) -> Any:
    """The memory as an array of so many elements; `dtype` is numpy's own number of a type (`array.dtype.num`)."""
    import numpy as np

    found = next((d for d in map(np.dtype, np.typecodes["All"].replace("O", "")) if d.num == dtype), None)
    if found is None or found.itemsize == 0:
        raise ValueError(f"{dtype!r} is no number of a numpy type with a size; array.dtype.num is one")
    sizes = tuple(integer(n, "shape") for n in ((shape,) if hasattr(shape, "__index__") else shape))
    nbytes = int(np.prod(sizes, dtype=object)) * found.itemsize
    return np.frombuffer(_memory(ptr, nbytes), found).reshape(sizes)


def bytes_to_ptr(data: bytes) -> int:
    """The address of the bytes, which must stay alive as long as it is used."""
    if not isinstance(data, bytes):
        raise TypeError(f"bytes_to_ptr takes bytes, not {type(data).__name__}")
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def ptr_to_bytes(ptr: int, nbytes: int) -> bytes:
    """A copy of the memory."""
    return bytes(_memory(ptr, integer(nbytes, "size")))


def start_thread(function: Callable[..., Any], args: Any) -> tuple[int, int]:
    """Runs function(args) in a thread, for acl.rt.process_report; its number is what subscribe_report takes."""
    if not callable(function):
        raise TypeError(f"function is {function!r}; it must be callable")
    thread = threading.Thread(target=function, args=(args,), daemon=True)
    thread.start()
    number = thread.ident or 0
    _threads[number] = thread
    return number, SUCCESS


def stop_thread(thread_id: int) -> int:
    """Waits until the thread has ended, for ten seconds at most; its function has to come to an end by itself."""
    thread = _threads.get(thread_id)
    if thread is None:
        return INVALID_PARAM
    thread.join(_LIMIT)
    if thread.is_alive():
        return FAILURE
    del _threads[thread_id]
    return SUCCESS


def _memory(ptr: int, nbytes: int) -> Any:
    start = integer(ptr, "ptr")
    if nbytes < 0 or (nbytes > 0 and not 0 < start < 2**63):
        raise ValueError(f"{nbytes} bytes at address {start} are no memory")
    return (ctypes.c_char * nbytes).from_address(start) if nbytes else b""
