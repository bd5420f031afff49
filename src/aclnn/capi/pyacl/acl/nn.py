"""The two phases of the operators, and the objects they take. Handles and addresses are integers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from ._library import INVALID_PARAM, SUCCESS, address, call, code, integer, signed, size
from ._signatures import SIGNATURES

_BY_VALUE = {
    "b": lambda value, what: ctypes.c_bool(value),
    "d": lambda value, what: ctypes.c_double(value),
    "i": signed,
    "c": lambda value, what: signed(value, what, 8),
    "q": lambda value, what: signed(value, what, 64),
    "p": address,
}
_PACKED = {0: "f", 2: "b", 3: "i", 4: "B", 6: "h", 7: "H", 8: "I", 9: "q", 10: "Q", 11: "d", 12: "?", 1: "e"}


def create_tensor(
    shape: Sequence[int],
    dtype: int,
    ptr: int,
    format: int = 2,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    storage: Sequence[int] | None = None,
) -> tuple[int, int]:
    """A view on memory; strides and offset count elements."""
    dims, rank = _numbers(shape)
    stored, stored_rank = _numbers(shape if storage is None else storage)
    steps = None if strides is None else _numbers(strides)[0]
    place = signed(offset, "offset", 64)
    view = (dims, rank, signed(dtype, "dtype"), steps, place, signed(format, "format"))
    return _new("aclCreateTensor", *view, stored, stored_rank, address(ptr, "ptr"))


def create_scalar(value: Any, dtype: int) -> tuple[int, int]:
    """A number of a type that Python can write: the integers, bool, FLOAT, FLOAT16, DOUBLE."""
    if dtype not in _PACKED:
        raise ValueError(f"create_scalar cannot write a number of dtype {dtype}; one of {sorted(_PACKED)} it can")
    try:
        bits = struct.pack("=" + _PACKED[dtype], value)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"create_scalar: {value!r} is no number of dtype {dtype} ({error})") from None
    return _new("aclCreateScalar", ctypes.create_string_buffer(bits, 16), signed(dtype, "dtype"))


def create_int_array(values: Sequence[int]) -> tuple[int, int]:
    return _new("aclCreateIntArray", *_numbers(values))


def create_bool_array(values: Sequence[bool]) -> tuple[int, int]:
    flags = [bool(value) for value in values]
    return _new("aclCreateBoolArray", (ctypes.c_bool * len(flags))(*flags), ctypes.c_uint64(len(flags)))


def create_tensor_list(tensors: Sequence[int]) -> tuple[int, int]:
    handles = [address(tensor, "a tensor").value for tensor in tensors]
    return _new("aclCreateTensorList", (ctypes.c_void_p * len(handles))(*handles), ctypes.c_uint64(len(handles)))


def destroy_tensor(tensor: int) -> int:
    return code("aclDestroyTensor", address(tensor, "tensor"))


def destroy_scalar(scalar: int) -> int:
    return code("aclDestroyScalar", address(scalar, "scalar"))


def destroy_int_array(array: int) -> int:
    return code("aclDestroyIntArray", address(array, "array"))


def destroy_bool_array(array: int) -> int:
    return code("aclDestroyBoolArray", address(array, "array"))


def destroy_tensor_list(tensors: int) -> int:
    """Destroys the list, and those of its members that are still alive."""
    return code("aclDestroyTensorList", address(tensors, "tensors"))


def destroy_executor(executor: int) -> int:
    return code("aclDestroyAclOpExecutor", address(executor, "executor"))


def set_repeatable(executor: int) -> int:
    return code("aclSetAclOpExecutorRepeatable", address(executor, "executor"))


def operators() -> list[str]:
    """The operators that can be called."""
    return sorted(SIGNATURES)


def get_workspace_size(operator: str, *given: Any) -> tuple[int, int, int]:
    """Phase 1: (workspace size, executor, ret). The arguments are those of the C function, in its order."""
    kinds = _signature(operator)
    if len(given) != len(kinds):
        raise TypeError(f"{operator} takes {len(kinds)} arguments, not {len(given)}")
    words = [_BY_VALUE[kind](given[i], f"{operator}: argument {i + 1}") for i, kind in enumerate(kinds)]
    needed, executor = ctypes.c_uint64(), ctypes.c_void_p()
    ret = code(f"{operator}GetWorkspaceSize", *words, ctypes.byref(needed), ctypes.byref(executor))
    return needed.value, executor.value or 0, ret


def execute(operator: str, workspace: int, workspace_size: int, executor: int, stream: int) -> int:
    """Phase 2, onto a stream."""
    _signature(operator)
    memory = address(workspace, "workspace"), size(workspace_size, "workspace_size")
    return code(operator, *memory, address(executor, "executor"), address(stream, "stream"))


def _signature(operator: str) -> str:
    if operator not in SIGNATURES:
        raise ValueError(f"there is no operator {operator!r} here; there are {', '.join(operators())}")
    return SIGNATURES[operator]


def _numbers(values: Sequence[int]) -> tuple[Any, ctypes.c_uint64]:
    numbers = [signed(value, "an element", 64).value for value in values]
    return (ctypes.c_int64 * len(numbers))(*numbers), ctypes.c_uint64(len(numbers))


def _new(name: str, *given: Any) -> tuple[int, int]:
    handle = call(name, *given, result=ctypes.c_void_p)
    return (integer(handle, "a handle"), SUCCESS) if handle else (0, INVALID_PARAM)
