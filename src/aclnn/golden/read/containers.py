"""Files of arrays: .npz, .npy, .safetensors, .pt and .bin, read without ever running what is inside.

Everything that can be is mapped into memory instead of read, and a file that is not what it claims is refused with
one sentence before anything of its claimed size is allocated.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import BFLOAT16, DType
from aclnn.base.files import whole_file
from aclnn.base.geometry import Array
from aclnn.base.status import invalid
from aclnn.golden.read import pt, untrusted
from aclnn.golden.read.untrusted import Archive, Opened

CASE_KEY = "__case__"  # where a file keeps the JSON text that describes its case

_SAFETENSORS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
_SAFETENSORS_NAMES = {name: code for code, name in _SAFETENSORS.items()}


class Contents(NamedTuple):
    """What a file holds: arrays by name, the JSON text of its case if it has one, and which arrays are bare bytes."""

    arrays: dict[str, Array]
    case: str | None = None
    raw: frozenset[str] = frozenset()


def read(path: Path) -> Contents:
    """The arrays of a file, by its suffix."""
    reader = _READERS.get(path.suffix.lower())
    if not path.suffix and untrusted.is_missing(path):
        raise invalid(f"{path} cannot be read: no such file or directory.")
    if reader is None:
        raise invalid(f"{path} has the suffix {path.suffix!r}; it must be one of {', '.join(_READERS)}.")
    with untrusted.opened(path) as source:
        return reader(source)


# .npz and .npy


def _read_npz(source: Opened) -> Contents:
    arrays: dict[str, Array] = {}
    case = None
    packed = Archive(source)
    for member in packed.members:
        name = member.filename.removesuffix(".npy")
        if name in arrays or (name == CASE_KEY and case is not None):
            raise ValueError(f"it has two arrays named {name}")
        array = _read_member(packed, member)
        if name == CASE_KEY:
            case = _text_of(array)
        else:
            arrays[name] = array
    return Contents(arrays, case)


def _read_member(packed: Archive, member: zipfile.ZipInfo) -> Array:
    with packed.open(member) as stream:
        claimed = _read_npy_header(stream)
        begin = stream.tell()
        if claimed.nbytes != member.file_size - begin:
            raise ValueError(f"{member.filename} has {member.file_size - begin} bytes of data, its header {claimed}")
        if untrusted.is_stored(member):
            return claimed.on(packed.source, packed.offset(member) + begin)
        return claimed.shaped(packed.source.fill(stream, claimed.nbytes).view(claimed.dtype))


def _read_npy(source: Opened) -> Contents:
    claimed = _read_npy_header(source.file)
    begin = source.file.tell()
    if claimed.nbytes != source.size - begin:
        raise ValueError(f"it has {source.size - begin} bytes of data, its header says {claimed}")
    return Contents({source.path.stem: claimed.on(source, begin)})


class _Claimed(NamedTuple):
    """What a header says of the bytes behind it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.nbytes} ({self.dtype} {list(self.shape)})"

    def on(self, source: Opened, offset: int) -> Array:
        """The array on the file itself; nothing is read yet."""
        return self.shaped(source.map(self.dtype, math.prod(self.shape), offset))

    def shaped(self, flat: Array) -> Array:
        array = flat.reshape(self.shape, order="F" if self.fortran else "C")
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _read_npy_header(stream: IO[bytes]) -> _Claimed:
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"npy version {version} is for structured arrays")
    shape, fortran, dtype = readers[version](stream)
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects, which are never loaded")
    if dtype.names is not None or min(shape, default=0) < 0:
        raise ValueError(f"an array of dtype {dtype} and shape {list(shape)} is no tensor")
    return _Claimed(dtype, tuple(int(n) for n in shape), fortran)


def _text_of(array: Array) -> str:
    """JSON text stored as an array: a string, bytes, or UTF-8 codes."""
    if array.nbytes > 4 * untrusted.LONGEST_JSON:  # numpy's strings have four bytes per letter
        raise ValueError(f"its {CASE_KEY} has {array.nbytes} bytes")
    if array.dtype.kind == "U" and array.size:
        return str(array.reshape(-1)[0])
    return np.ascontiguousarray(array).tobytes().decode("utf-8").rstrip("\0")


# .safetensors: eight bytes of length, a JSON header, the data. Read by hand, since its numpy side has no bfloat16.


def _read_safetensors(source: Opened) -> Contents:
    (length,) = struct.unpack("<Q", source.read(8, 0))
    if length > min(source.size - 8, untrusted.LONGEST_JSON):
        raise ValueError(f"its header claims {length} bytes of a file of {source.size}")
    header = untrusted.parsed(source.read(length, 8))
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    case = _case_in(header.pop("__metadata__", {}))
    arrays = {name: _read_entry(source, name, entry, 8 + length) for name, entry in header.items()}
    if sum(a.nbytes for a in arrays.values()) > source.size - 8 - length:
        raise ValueError("its tensors overlap")
    return Contents(arrays, case)


def _case_in(metadata: Any) -> str | None:
    if not isinstance(metadata, dict):
        raise ValueError(f"its __metadata__ is {brief(metadata)}; it must be a JSON object")
    case = metadata.get(CASE_KEY)
    if case is not None and not isinstance(case, str):
        raise ValueError(f"its {CASE_KEY} is {brief(case)}; it must be a text")
    return case


def _read_entry(source: Opened, name: str, entry: Any, start: int) -> Array:
    if not isinstance(entry, dict) or not entry.keys() >= {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name} is {brief(entry)}; it must have a dtype, a shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = dtypes.by_name(_SAFETENSORS.get(code, "")) if isinstance(code, str) else None
    if dtype is None or dtype.numpy is None:
        raise ValueError(f"{name} has dtype {brief(code)}, which no aclDataType stands for")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"{name} has shape {brief(shape)} at {brief(offsets)}; both must be lists of sizes")
    claimed, (begin, end) = _Claimed(dtype.numpy, tuple(shape)), offsets
    if end - begin != claimed.nbytes or start + end > source.size:
        raise ValueError(f"{name} is at bytes {begin} to {end} of {source.size - start}, its shape says {claimed}")
    return claimed.on(source, start + begin)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def brief(value: Any) -> str:
    """A value of someone else's, as short as a sentence can bear."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"


# .pt: only tensors, in pt.py. .bin: bytes whose meaning stands elsewhere.


def _read_pt(source: Opened) -> Contents:
    return Contents(pt.read(source))


def _read_bin(source: Opened) -> Contents:
    name = source.path.stem
    return Contents({name: source.map(np.dtype(np.uint8), source.size, 0)}, raw=frozenset([name]))


_READERS: dict[str, Callable[[Opened], Contents]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".safetensors": _read_safetensors,
    ".pt": _read_pt,
    ".pth": _read_pt,
    ".bin": _read_bin,
}
SUFFIXES = tuple(_READERS)


# Writing


def write(path: Path, contents: Contents) -> None:
    """Writes .npz or .safetensors, whole or not at all. Types numpy cannot store are written as raw integers."""
    writers: dict[str, Callable[[BinaryIO, Contents], None]] = {".npz": _write_npz, ".safetensors": _write_safetensors}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise invalid(f"{path} has the suffix {path.suffix!r}; it must be .npz or .safetensors.")
    with whole_file(path) as file:
        writer(file, contents)


def _write_npz(file: BinaryIO, contents: Contents) -> None:
    arrays = {name: storable(array) for name, array in contents.arrays.items()}
    if contents.case is not None:
        arrays[CASE_KEY] = np.array(contents.case)
    np.savez(file, **arrays)  # type: ignore[arg-type]


def _write_safetensors(file: BinaryIO, contents: Contents) -> None:
    header: dict[str, Any] = {} if contents.case is None else {"__metadata__": {CASE_KEY: contents.case}}
    end = 0
    for name, array in contents.arrays.items():
        begin, end = end, end + array.nbytes
        code = _SAFETENSORS_NAMES[known_dtype(array, name).name]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for array in contents.arrays.values():
        file.write(np.ascontiguousarray(array).tobytes())


def known_dtype(array: Array, name: str) -> DType:
    found = dtypes.by_numpy(array.dtype)
    if found is None:
        raise invalid(f"{name} has dtype {array.dtype}, which no aclDataType stands for.", name)
    return found


def storable(array: Array) -> Array:
    """The array as numpy can store it: extension types as unsigned integers of the same size."""
    if array.dtype.kind != "V":
        return array
    raw: Array = np.ascontiguousarray(array).reshape(array.shape).view(f"u{array.itemsize}")
    return raw


def as_dtype(array: Array, dtype: DType | None, name: str) -> Array:
    """The array as the type it is meant to be: raw integers and `|V2` (bfloat16 after np.save) get theirs back."""
    if dtype is None and array.dtype == np.dtype("V2"):
        dtype = BFLOAT16
    if dtype is None or dtype.numpy is None or array.dtype == dtype.numpy:
        return array
    if array.dtype.kind in "uiV" and array.itemsize == dtype.itemsize:
        return array.view(dtype.numpy)
    if array.dtype == np.uint8 and array.ndim == 1:  # bare bytes
        if array.size % dtype.itemsize:
            raise invalid(f"{name} has {array.size} bytes, which is no whole number of {dtype}.", name)
        return array.view(dtype.numpy)
    raise invalid(f"{name} has dtype {array.dtype} but its description says {dtype}.", name)
