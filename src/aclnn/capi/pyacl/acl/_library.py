"""The library behind the module, and how its functions are called."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUCCESS = 0
INVALID_PARAM = 100000
FAILURE = 500001

Address = ctypes.c_void_p


class NotSupportedError(RuntimeError):
    """A function that this library does not have; the text says which, and why."""


def _is_recorded(version_file: Path) -> bool:
    """Whether this Python has the version that the prefix was made with."""
    try:
        lines = version_file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    return "python={}.{}".format(*sys.version_info[:2]) in lines


def _load() -> ctypes.CDLL:
    prefix = Path(__file__).resolve().parents[3]
    beside = prefix / "lib64" / "libascendcl.so"
    if not _is_recorded(prefix / "version.info") and importlib.util.find_spec("aclnn") is not None:
        os.environ.setdefault("ACLNN_PYTHON", sys.executable)  # it has the engine, too
    try:
        return ctypes.CDLL(str(beside) if beside.exists() else "libascendcl.so")
    except OSError as error:
        raise ImportError(
            f"acl: the library cannot be loaded: {error}; it lies in lib64 of the installed prefix"
        ) from None


_library = _load()


def call(name: str, *given: Any, result: Any = ctypes.c_int) -> Any:
    """Calls a function of the library; wrong types are named."""
    function = _library[name]  # a new object each time: threads do not share what is declared here
    function.restype = result
    try:
        return function(*given)
    except ctypes.ArgumentError as error:
        raise TypeError(f"{name}: {error}; numbers, addresses and handles are integers here") from None


def code(name: str, *given: Any) -> int:
    """Calls a function that answers a code."""
    return int(call(name, *given))


def integer(value: Any, what: str) -> int:
    """A whole number, or a sentence about what is none."""
    try:
        return value.__index__()  # type: ignore[no-any-return]
    except AttributeError:
        raise TypeError(f"{what} is {value!r}; it must be an integer") from None


def address(value: Any, what: str) -> ctypes.c_void_p:
    """An address or a handle, as the library takes it; None is null."""
    number = 0 if value is None else integer(value, what)
    if not 0 <= number < 2**64:
        raise ValueError(f"{what} is {number}; an address or a handle is in 0..2**64")
    return Address(number)


def size(value: Any, what: str) -> ctypes.c_size_t:
    number = integer(value, what)
    if not 0 <= number < 2**64:
        raise ValueError(f"{what} is {number}; it must be in 0..2**64")
    return ctypes.c_size_t(number)


def signed(value: Any, what: str, bits: int = 32) -> Any:
    number = integer(value, what)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{what} is {number}; it must fit into {bits} bits")
    return {8: ctypes.c_int8, 32: ctypes.c_int32, 64: ctypes.c_int64}[bits](number)


def made(name: str, *given: Any) -> tuple[int, int]:
    """Calls a function whose first argument takes the address or handle it makes."""
    place = Address()
    ret = code(name, ctypes.byref(place), *given)
    return place.value or 0, ret


def absent_module(name: str, why: str) -> types.ModuleType:
    """A module of which every function answers with a sentence."""

    def get(function: str) -> Callable[..., Any]:
        if function.startswith("__"):
            raise AttributeError(function)

        def refuse(*given: Any, **named: Any) -> Any:
            raise NotSupportedError(f"{name}.{function}: {why}.")

        return refuse

    module = types.ModuleType(name, f"Not here: {why}.")
    module.__getattr__ = get  # type: ignore[method-assign]
    return module
