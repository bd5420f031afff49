"""The folder for what is expensive to make: native code, built once and kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def private_folder(*names: str) -> Path:
    """A folder below ACLNN_CACHE_DIR (else the user's cache) that only its owner can write to; made if need be.

    Raises OSError with the reason if there is none: what others can write to must not be run.
    """
    folder = _root().joinpath(*names)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    foreign = hasattr(os, "geteuid") and found.st_uid != os.geteuid()
    if foreign or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        raise OSError(f"{folder} is not a folder that only its user can write to")
    return folder


def _root() -> Path:
    chosen = os.environ.get("ACLNN_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "aclnn"
    except RuntimeError as error:
        raise OSError("there is no home folder for a cache; name one with ACLNN_CACHE_DIR") from error
