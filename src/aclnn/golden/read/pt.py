"""Files of `torch.save`, read without torch: a zip with one pickle that says which bytes are which tensor.

The pickle is never run. A machine of our own takes the few instructions that describe tensors, knows no other function
than those that make one, and refuses the rest; the bytes of tensors are mapped, not read.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.geometry import Array, reach
from aclnn.golden.read import untrusted
from aclnn.golden.read.untrusted import Archive, Opened

LONGEST_PICKLE = 4 * 2**20
_STORAGES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
}


class Storage(NamedTuple):
    """Bytes of the archive, by the name of their member."""

    dtype: np.dtype[Any]
    key: str
    length: int


class Stored(NamedTuple):
    """A tensor: a view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Named(NamedTuple):
    """A name that the pickle looked up; nothing is imported."""

    name: str


def read(source: Opened) -> dict[str, Array]:
    """The tensors of a file: of a dictionary by its keys, or the only one by the name of the file."""
    if source.size < 2 or source.read(2, 0) != b"PK":
        raise ValueError("it is no zip archive but a legacy format; save it with PyTorch 1.6 or later")
    packed = Archive(source)
    if any(not untrusted.is_stored(member) for member in packed.members):
        raise ValueError("it has packed members, which torch.save never makes")
    members = {m.filename.partition("/")[2]: m for m in packed.members}
    if "data.pkl" not in members:
        raise ValueError("it has no data.pkl, which torch.save always makes")
    if "byteorder" in members and packed.open(members["byteorder"]).read(8) != b"little":
        raise ValueError("it was saved on a machine of the other byte order")
    if members["data.pkl"].file_size > LONGEST_PICKLE:
        raise ValueError(f"its data.pkl has {members['data.pkl'].file_size} bytes, more than {LONGEST_PICKLE}")
    found = _Machine().run(packed.open(members["data.pkl"]).read())
    named = found if isinstance(found, dict) else {source.path.stem: found}
    return {str(name): _view(packed, members, str(name), value) for name, value in named.items()}


def _view(packed: Archive, members: dict[str, Any], name: str, value: Any) -> Array:
    if isinstance(value, _Named):
        raise ValueError("it holds Python objects other than tensors, which are never loaded")
    if not isinstance(value, Stored):
        raise ValueError(f"{name} is a {type(value).__name__}, not a tensor")
    storage, source = value.storage, packed.source
    member = members.get(f"data/{storage.key}")
    if member is None or member.file_size < storage.length * storage.dtype.itemsize:
        raise ValueError(f"the storage {storage.key} of {name} is not there or too short")
    if len(value.shape) != len(value.strides) or min((*value.shape, *value.strides, value.offset), default=0) < 0:
        raise ValueError(f"{name} has shape {list(value.shape)} and strides {list(value.strides)}")
    _, last = reach(value.shape, value.strides)
    if 0 not in value.shape and value.offset + last >= storage.length:
        raise ValueError(f"{name} reaches beyond its storage of {storage.length} elements")
    untrusted.refuse_repeats(source.path, name, value.shape, source.size // storage.dtype.itemsize)
    flat = source.map(storage.dtype, storage.length, packed.offset(member))
    strides = tuple(s * storage.dtype.itemsize for s in value.strides)
    if 0 in value.shape:
        return np.empty(value.shape, storage.dtype)
    return np.lib.stride_tricks.as_strided(flat[value.offset :], value.shape, strides, writeable=False)


class _Machine:
    """The instructions that describe tensors, in tuples, lists and dictionaries."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, text: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(text):
            if opcode.name == "STOP":
                return self.stack[-1]
            self._step(opcode.name, argument)
        raise ValueError("its data.pkl does not end")

    def _step(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name == "MARK":
            self.marks.append(len(self.stack))
        elif name in _ACTIONS:
            _ACTIONS[name](self)
        elif name == "GLOBAL":
            self.stack.append(_looked_up(*argument.split(" ", 1)))
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"it holds Python objects other than tensors, which are never loaded ({name})")

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def tuple_of(self, count: int | None) -> None:
        found = self.since_mark() if count is None else [self.stack.pop() for _ in range(count)][::-1]
        self.stack.append(tuple(found))

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise ValueError("it sets items of something that is no dictionary")
        if not all(isinstance(key, str) for key in items[::2]):  # a nested key could be as long as it likes
            raise ValueError("it has a dictionary whose keys are no texts")
        target.update(zip(items[::2], items[1::2], strict=True))

    def append(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise ValueError("it appends to something that is no list")
        self.stack[-1].extend(items)

    def persistent(self) -> None:
        kind, storage, key, _, count = self.stack.pop()
        known = kind == "storage" and isinstance(storage, np.dtype) and isinstance(key, str)
        if not known or not isinstance(count, int) or not 0 <= count < 2**48:
            raise ValueError("it refers to something that is no storage")
        self.stack.append(Storage(storage, key, count))

    def call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Named) or function.name not in _MAKERS:
            raise ValueError("it holds Python objects other than tensors, which are never loaded")
        self.stack.append(_MAKERS[function.name](*arguments))

    def build(self) -> None:
        """State of an object; only the attributes of an empty ordered dictionary come, and they do not matter."""
        self.stack.pop()


_VALUES = {"BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
_ACTIONS: dict[str, Callable[[_Machine], None]] = {
    "TUPLE": lambda m: m.tuple_of(None),
    "TUPLE1": lambda m: m.tuple_of(1),
    "TUPLE2": lambda m: m.tuple_of(2),
    "TUPLE3": lambda m: m.tuple_of(3),
    "SETITEM": lambda m: m.set_items([m.stack.pop() for _ in range(2)][::-1]),
    "SETITEMS": lambda m: m.set_items(m.since_mark()),
    "APPEND": lambda m: m.append([m.stack.pop()]),
    "APPENDS": lambda m: m.append(m.since_mark()),
    "BINPERSID": _Machine.persistent,
    "REDUCE": _Machine.call,
    "BUILD": _Machine.build,
}


def _looked_up(module: str, name: str) -> Any:
    if module == "torch" and name.endswith("Storage") and name.removesuffix("Storage") in _STORAGES:
        known = dtypes.by_name(_STORAGES[name.removesuffix("Storage")])
        return known.numpy if known is not None else None
    return _Named(f"{module}.{name}")


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Stored:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, Storage) or len(numbers) > 65 or not all(type(n) is int for n in numbers):
        raise ValueError("it describes a tensor of something that is no storage")
    return Stored(storage, offset, tuple(shape), tuple(strides))


_MAKERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": lambda data, *_: data,
    "collections.OrderedDict": lambda *_: {},
}
