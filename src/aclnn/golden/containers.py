"""Files of arrays: .npz, .npy, .safetensors, .pt and .bin, read without ever running what is inside.

Everything that can be is mapped into memory instead of read, and a file that is not what it claims is refused with
one sentence before anything of its claimed size is allocated.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import BFLOAT16, DType
from aclnn.base.files import whole_file
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, invalid

CASE_KEY = "__case__"  # where a file keeps the JSON text that describes its case

_FREE_TO_UNPACK = 64 * 2**20  # a packed file may always grow to this many bytes …
_MOST_GROWTH = 100  # … and beyond it to this many times its own size
_LONGEST_TEXT = 16 * 2**20  # of headers and case descriptions

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
    if not path.suffix and not os.path.exists(path):
        raise invalid(f"{path} cannot be read: no such file or directory.")
    if reader is None:
        raise invalid(f"{path} has the suffix {path.suffix!r}; it must be one of {', '.join(_READERS)}.")
    with refusals(path):
        return reader(path)


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file becomes one sentence that names it."""
    try:
        yield
    except AclnnError:
        raise
    except MemoryError:
        raise invalid(f"{path} holds more than fits into memory.") from None
    except OSError as error:
        raise invalid(f"{path} cannot be read: {(error.strerror or str(error)).rstrip('.').lower()}.") from None
    except Exception as error:  # a parser that is fed garbage may raise anything
        raise invalid(f"{path} is damaged or not what its name says: {_first_line(error)}.") from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


# .npz and .npy


def _read_npz(path: Path) -> Contents:
    arrays: dict[str, Array] = {}
    case = None
    with zipfile.ZipFile(path) as packed:
        _refuse_bomb(path, packed)
        for member in packed.infolist():
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"it has two arrays named {name}")
            array = _read_member(path, packed, member)
            if name == CASE_KEY:
                case = _text_of(array)
            else:
                arrays[name] = array
    return Contents(arrays, case)


def _refuse_bomb(path: Path, packed: zipfile.ZipFile) -> None:
    on_disk, unpacked = path.stat().st_size, sum(m.file_size for m in packed.infolist())
    if unpacked > max(_FREE_TO_UNPACK, _MOST_GROWTH * on_disk):
        raise invalid(
            f"{path} has {on_disk} bytes but claims to unpack to {unpacked}, more than {_MOST_GROWTH} times as many; "
            "store large arrays uncompressed."
        )


def _read_member(path: Path, packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with packed.open(member) as stream:
        claimed = _read_npy_header(stream)
        begin = stream.tell()
        if claimed.nbytes != member.file_size - begin:
            raise ValueError(f"{member.filename} has {member.file_size - begin} bytes of data, its header {claimed}")
        if member.compress_type == zipfile.ZIP_STORED:
            return claimed.map(path, _data_offset(path, member) + begin)
        data = stream.read(claimed.nbytes + 1)  # never more than the header says, whatever the member unpacks to
    if len(data) != claimed.nbytes:
        raise ValueError(f"{member.filename} unpacks to {len(data)} bytes of data, its header says {claimed}")
    return claimed.shaped(np.frombuffer(data, claimed.dtype))


def _data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin: behind its local header, whose two last lengths vary."""
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
    return int(member.header_offset + 30 + name_length + extra_length)


def _read_npy(path: Path) -> Contents:
    with path.open("rb") as file:
        claimed = _read_npy_header(file)
        begin = file.tell()
    present = path.stat().st_size - begin
    if claimed.nbytes != present:
        raise ValueError(f"it has {present} bytes of data, its header says {claimed}")
    return Contents({path.stem: claimed.map(path, begin)})


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

    def map(self, path: Path, offset: int) -> Array:
        """The array on the file itself; nothing is read yet."""
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        return self.shaped(np.memmap(path, self.dtype, "r", offset, (math.prod(self.shape),)))

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
    if array.nbytes > _LONGEST_TEXT:
        raise ValueError(f"its {CASE_KEY} has {array.nbytes} bytes")
    if array.dtype.kind == "U":
        return str(array.reshape(-1)[0])
    return np.ascontiguousarray(array).tobytes().decode("utf-8").rstrip("\0")


# .safetensors: eight bytes of length, a JSON header, the data. Read by hand, since its numpy side has no bfloat16.


def _read_safetensors(path: Path) -> Contents:
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > min(size - 8, _LONGEST_TEXT):
            raise ValueError(f"its header claims {length} bytes of a file of {size}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    metadata = header.pop("__metadata__", {})
    arrays = {name: _read_entry(path, name, entry, 8 + length, size) for name, entry in header.items()}
    return Contents(arrays, metadata.get(CASE_KEY))


def _read_entry(path: Path, name: str, entry: Mapping[str, Any], start: int, size: int) -> Array:
    code, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    dtype = dtypes.by_name(_SAFETENSORS.get(code, ""))
    if dtype is None or dtype.numpy is None:
        raise ValueError(f"{name} has dtype {code}, which no aclDataType stands for")
    if not all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end)):
        raise ValueError(f"{name} has shape {list(shape)} at {begin} to {end}")
    claimed = _Claimed(dtype.numpy, shape)
    if end - begin != claimed.nbytes or start + end > size:
        raise ValueError(f"{name} is at bytes {begin} to {end} of {size - start}, its shape says {claimed}")
    return claimed.map(path, start + begin)


# .pt: only tensors, by PyTorch's own restricted reader. .bin: bytes whose meaning stands elsewhere.


def _read_pt(path: Path) -> Contents:
    try:
        import torch
    except ImportError:
        raise invalid(f"{path} needs PyTorch to be read; install it, or save .npz or .safetensors instead.") from None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            _refuse_bomb(path, packed)
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # the unpickler has its own errors, whose text tells people how to run foreign code
        refused = "pickl" in type(error).__name__.lower()
        reason = "it holds Python objects other than tensors, which are never loaded" if refused else _first_line(error)
        raise ValueError(reason) from None
    named = found if isinstance(found, dict) else {path.stem: found}
    return Contents({str(name): _from_torch(name, value) for name, value in named.items()})


def _from_torch(name: object, value: Any) -> Array:
    from aclnn.base.adopt import adopt, is_torch_tensor

    if not is_torch_tensor(value):
        raise ValueError(f"{name} is a {type(value).__name__}, not a tensor")
    view = adopt(value, str(name)).view
    assert view is not None
    return view


def _read_bin(path: Path) -> Contents:
    size = path.stat().st_size
    return Contents({path.stem: _Claimed(np.dtype(np.uint8), (size,)).map(path, 0)}, raw=frozenset([path.stem]))


_READERS: dict[str, Callable[[Path], Contents]] = {
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
