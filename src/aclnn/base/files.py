"""Files that others read: there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aclnn.base.status import invalid


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes `path` when the block ends well, and vanishes when it does not.

    A link at `path` is replaced, never followed: who planted it does not choose which of our files is overwritten. The
    writer gets the open file, not its name, for the same reason: a name in a folder of others may become a link.
    """
    part = path.with_name(f".aclnn-{os.urandom(8).hex()}.part")
    try:
        try:
            with open(part, "xb", opener=_open_new) as file:
                yield file
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise invalid(f"{path} cannot be written: {(error.strerror or str(error)).lower()}.") from None


def _open_new(path: str, flags: int) -> int:
    """Mode "x" has O_EXCL, which follows no link where systems keep to POSIX; those that do not may know O_NOFOLLOW."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
