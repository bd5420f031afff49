"""The one gate through which every file comes that someone else wrote.

A file is opened once, and only if it is a regular one, so that no pipe or device can make the process wait; its size is
that of the open descriptor. No more is read, unpacked, listed or shown than the limits below allow, and whatever goes
wrong is one sentence that names the file. No reader opens, maps or lists anything itself, says
`tests/golden/read/test_untrusted.py`.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, invalid

FREE = 8 * 2**20  # bytes that a packed file may always grow to: comparing them in float64 takes 30 times as many …
GROWTH = 100  # … and beyond it to this many times its own size …
MOST_UNPACKED = 2**32  # … but never further
FREE_TO_SHOW = 2**20  # elements of a view that shows its storage more than once; beyond, GROWTH holds too
LONGEST_TEXT = 16 * 2**20  # bytes of a table
LONGEST_JSON = 4 * 2**20  # bytes of a header or a description, which grow twentyfold when they are parsed
MOST_LINES = 200_000  # of a table
MOST_ENTRIES = 100_000  # of a folder
PATIENCE = 60.0  # seconds that one file may take to read

_CHUNK = 2**20
_METHODS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "lzma"}
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}
# Without O_NONBLOCK a pipe that takes the file's place between asking and opening would hold us.
_FLAGS = os.O_RDONLY | sum(getattr(os, f"O_{name}", 0) for name in ("NONBLOCK", "CLOEXEC", "NOCTTY", "BINARY"))


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
        raise invalid(f"{path} is damaged or not what its name says: {first_line(error)}.") from None


def first_line(error: BaseException) -> str:
    """Without the addresses of objects, which say nothing to who reads it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r":? <[^<>]* at 0x[0-9a-f]+>", "", lines[0]).rstrip(".")


@dataclass(frozen=True)
class Opened:
    """A regular file that is open for reading, as large as it was when it was opened."""

    path: Path
    file: IO[bytes]
    size: int
    until: float  # when patience ends

    def read(self, count: int, at: int) -> bytes:
        """Exactly so many bytes."""
        if at < 0 or at + count > self.size:
            raise ValueError(f"it has {self.size} bytes, {count} are wanted from byte {at} on")
        self.file.seek(at)
        data = self.file.read(count)
        if len(data) != count:
            raise ValueError(f"it ends after {at + len(data)} bytes")
        return data

    def map(self, dtype: np.dtype[Any], count: int, at: int) -> Array:
        """Elements on the file itself; nothing is read yet."""
        if count == 0:
            return np.empty(0, dtype)
        return np.memmap(self.file, dtype, "r", at, (count,))

    def fill(self, stream: IO[bytes], count: int) -> Array:
        """So many bytes of a packed stream, counted while they are unpacked; None follow them."""
        data = np.empty(count, np.uint8)
        done = 0
        while done < count and (more := stream.read(min(_CHUNK, count - done))):
            data[done : done + len(more)] = np.frombuffer(more, np.uint8)
            done += len(more)
            self.keep_time()
        if done != count or stream.read(1):
            raise ValueError(
                f"a member unpacks to {'less' if done != count else 'more'} than the {count} bytes it says"
            )
        return data

    def keep_time(self) -> None:
        if time.monotonic() > self.until:
            raise ValueError(f"reading it took longer than {PATIENCE:g} s")


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """The file, if it is a regular one; whatever goes wrong in the block is a sentence about it."""
    with refusals(path):
        _refuse_irregular(path, os.stat(path))  # opening a device can already do something
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            found = os.fstat(file.fileno())
            _refuse_irregular(path, found)
            yield Opened(path, file, found.st_size, time.monotonic() + PATIENCE)


def _refuse_irregular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise invalid(f"{path} cannot be read: it is {kind}, and only regular files are read.")


def is_folder(path: Path) -> bool:
    with refusals(path):  # a name may be too long even to ask
        return path.is_dir()


def is_missing(path: Path) -> bool:
    with refusals(path):
        return not path.exists()


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path, whatever links are on the way, stays below a folder."""
    with refusals(path):
        return path.resolve().is_relative_to(folder.resolve())


def entries(path: Path) -> list[Path]:
    """What is in a folder, by name."""
    with refusals(path), os.scandir(path) as found:
        names = [entry.name for entry in islice(found, MOST_ENTRIES + 1)]
    if len(names) > MOST_ENTRIES:
        raise invalid(f"{path} has more than {MOST_ENTRIES} entries, which is more than are looked at.")
    return [path / name for name in sorted(names)]


def identity(path: Path) -> tuple[int, int] | Path:
    """What tells a file from others, by whatever name or link it is called; a missing one is its name."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return path
    return found.st_dev, found.st_ino


# Text


def text(path: Path, at_most: int = LONGEST_TEXT) -> str:
    """The text of a file."""
    with opened(path) as found:
        if found.size > at_most:
            raise invalid(f"{path} has {found.size} bytes; a text has at most {at_most}.")
        return _decoded(path, found.read(found.size, 0))


def _decoded(path: Path, data: bytes) -> str:
    """UTF-8, or GBK as spreadsheets in China save tables."""
    for encoding in ("utf-8-sig", "gb18030"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    raise invalid(f"{path} is neither UTF-8 nor GBK; save it as UTF-8.")


def lines(path: Path) -> list[str]:
    """The lines of a table. They are counted before they are made: each takes more memory than its letters."""
    whole = text(path)
    count = sum(map(whole.count, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
    if count > MOST_LINES:
        raise invalid(f"{path} has {count} lines; a table has at most {MOST_LINES}.")
    return whole.splitlines()


def parsed(source: str | bytes, at_most: int = LONGEST_JSON) -> Any:
    """What a JSON text says; ValueError with the reason where it is none."""
    if len(source) > at_most:
        raise ValueError(f"its description has {len(source)} characters, more than {at_most}")
    try:
        return json.loads(source, object_pairs_hook=_no_name_twice)
    except RecursionError:
        raise ValueError("its description nests too deeply") from None


def said(given: Any) -> tuple[Any, Path | None]:
    """What was given as it is, or what the file of JSON that it names says, and which file that is."""
    if not isinstance(given, (str, Path)):
        return given, None
    path = Path(given)
    source = text(path, LONGEST_JSON)
    with refusals(path):
        return parsed(source), path


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"it says {twice!r} twice")
    return found


# Archives


class Archive:
    """A zip archive: members that are stored or deflated, do not share bytes, and grow no further than they may."""

    def __init__(self, source: Opened):
        self.source = source
        self._zip = zipfile.ZipFile(source.file)
        self.members = self._zip.infolist()
        for member in self.members:
            _refuse_packing(member)
        if sum(m.compress_size for m in self.members) > source.size:
            raise ValueError("its members overlap")
        self._refuse_bomb()

    def _refuse_bomb(self) -> None:
        size, unpacked = self.source.size, sum(m.file_size for m in self.members if not is_stored(m))
        if unpacked > min(max(FREE, GROWTH * size), MOST_UNPACKED):
            raise invalid(
                f"{self.source.path} has {size} bytes but claims to unpack to {unpacked}, more than {GROWTH} times as "
                f"many or more than {MOST_UNPACKED}; store large arrays uncompressed."
            )

    def open(self, member: zipfile.ZipInfo) -> IO[bytes]:
        return self._zip.open(member)

    def offset(self, member: zipfile.ZipInfo) -> int:
        """Where a stored member's bytes begin: behind its local header, whose two last lengths vary."""
        lengths = struct.unpack("<HH", self.source.read(4, member.header_offset + 26))
        return int(member.header_offset + 30 + sum(lengths))


def is_stored(member: zipfile.ZipInfo) -> bool:
    return member.compress_type == zipfile.ZIP_STORED


def _refuse_packing(member: zipfile.ZipInfo) -> None:
    """Other methods cannot be unpacked piece by piece: a piece of bzip2 or lzma is as large as it likes."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        name = _METHODS.get(member.compress_type, f"method {member.compress_type}")
        raise ValueError(f"{member.filename} is packed with {name}; only stored and deflated members are read")
    if member.flag_bits & 1:
        raise ValueError(f"{member.filename} is encrypted")
    if is_stored(member) and member.file_size != member.compress_size:
        raise ValueError(f"{member.filename} has {member.compress_size} bytes but claims {member.file_size}")


# Views


def refuse_repeats(path: Path, name: str, shape: tuple[int, ...], stored: int) -> None:
    """A view with strides of 0 shows few elements as many; whoever reads them all needs memory for all."""
    shown = math.prod(shape)
    if shown > max(FREE_TO_SHOW, GROWTH * stored):
        raise invalid(
            f"{path}: {name} shows {shown} elements, but only {stored} are stored; store large tensors whole.", name
        )
