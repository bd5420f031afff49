"""The folder for what is expensive to make: native code, built once and kept.

Only what its user wrote may be run. A name proves nothing: whoever can rename a parent decides where it leads the next
time. The folder is therefore opened once, its owner and mode are asked of the descriptor, and files are opened below
that descriptor and asked the same. Windows has no such descriptors: there the user's profile is what is private.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger("aclnn")

_HAS_DESCRIPTORS = os.open in os.supports_dir_fd
_PART = ".part"
_DEAD = 3600  # seconds; a piece is written in milliseconds, so its writer was killed long ago
_NOT_OURS = stat.S_IWGRP | stat.S_IWOTH


class PrivateFolder:
    """A folder below ACLNN_CACHE_DIR (else the user's cache) that only its owner can write to; made if need be.

    Raises OSError with the reason if there is none: what others can write to must not be run.
    """

    def __init__(self, *names: str):
        self.path = root().joinpath(*names)
        with _said_once(), self.opened():
            pass

    @contextmanager
    def opened(self) -> Iterator[int | None]:
        """The descriptor of the folder, checked; None where the system has none."""
        try:
            folder = self._open()
        except FileNotFoundError:
            _make(self.path)
            folder = self._open()
        try:
            if folder is not None:
                _check(os.fstat(folder), stat.S_ISDIR, self.path)
            yield folder
        finally:
            if folder is not None:
                os.close(folder)

    def read(self, name: str) -> bytes:
        """The content of a file that nobody else can have written. Raises OSError if there is none."""
        # O_NONBLOCK: a pipe in its place is looked at, not waited for.
        with self.opened() as folder, self._file(folder, name, os.O_RDONLY | _flag("O_NONBLOCK")) as file:
            found = os.fstat(file)
            _check(found, stat.S_ISREG, self.path / name)
            if found.st_nlink > 1:
                raise OSError(f"{self.path / name} has {found.st_nlink} names: another may lead to it from outside")
            with open(file, "rb", closefd=False) as content:
                return content.read()

    def write(self, name: str, content: bytes) -> None:
        """Writes a file whole or not at all, whoever else is writing it. Raises OSError."""
        part = f"{name}.{os.urandom(8).hex()}{_PART}"
        with _said_once(), self.opened() as folder:
            self._sweep(folder)
            try:
                create = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with self._file(folder, part, create) as file, open(file, "wb", closefd=False) as whole:
                    whole.write(content)
                old, new = self._name(folder, part), self._name(folder, name)
                os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                self._remove(folder, part)  # a full disk is not made fuller by every process
                raise

    def _sweep(self, folder: int | None) -> None:
        """Removes the pieces of those who were killed while they wrote."""
        with os.scandir(self.path if folder is None else folder) as found:
            pieces = [entry for entry in found if entry.name.endswith(_PART)]
        for piece in pieces:
            with suppress(OSError):  # somebody else was faster
                if time.time() - piece.stat(follow_symlinks=False).st_mtime > _DEAD:
                    self._remove(folder, piece.name)

    def _remove(self, folder: int | None, name: str) -> None:
        with suppress(OSError):
            os.unlink(self._name(folder, name), dir_fd=folder)

    def _open(self) -> int | None:
        if not _HAS_DESCRIPTORS:
            self.path.stat()
            return None
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            if self.path.is_symlink():
                raise OSError(f"{self.path} is a link, not a folder that only its user can write to") from error
            raise

    @contextmanager
    def _file(self, folder: int | None, name: str, flags: int) -> Iterator[int]:
        flags |= _flag("O_NOFOLLOW") | _flag("O_BINARY")
        file = os.open(self._name(folder, name), flags, 0o600, dir_fd=folder)
        try:
            yield file
        finally:
            os.close(file)

    def _name(self, folder: int | None, name: str) -> str:
        return str(self.path / name) if folder is None else name


def is_private(folder: Path) -> bool:
    """Whether this is a folder, no link to one, that only its user can write to."""
    try:
        _check(folder.lstat(), stat.S_ISDIR, folder)
    except OSError:
        return False
    return True


def _check(found: os.stat_result, is_kind: Callable[[int], bool], path: Path) -> None:
    """Raises OSError unless this user alone can have written to what was opened."""
    if not hasattr(os, "geteuid"):
        return
    if found.st_uid != os.geteuid() or not is_kind(found.st_mode) or found.st_mode & _NOT_OURS:
        kind = "folder" if is_kind is stat.S_ISDIR else "file"
        seen = f"owner {found.st_uid}, mode {stat.filemode(found.st_mode)}, we are {os.geteuid()}"
        raise OSError(f"{path} is not a {kind} that only its user can write to ({seen})")


def _make(folder: Path) -> None:
    """Makes what is missing of a path, each folder for its owner alone, whatever the umask is."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)


def _flag(name: str) -> int:
    """A flag of open, on systems that have it."""
    return getattr(os, name, 0)


_refusals: list[str] = []


@contextmanager
def _said_once() -> Iterator[None]:
    """What the operating system refuses costs time in every process to come: it is said, once in each."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and not _refusals:
            _refusals.append(str(error))
            log.warning(
                "the cache cannot be written, so that native code is made anew every time; "
                "name another folder with ACLNN_CACHE_DIR: %s",
                error,
            )
        raise


def root() -> Path:
    """Where caches are. Raises OSError if nobody says."""
    chosen = os.environ.get("ACLNN_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "aclnn"
    except RuntimeError as error:
        raise OSError("there is no home folder for a cache; name one with ACLNN_CACHE_DIR") from error
