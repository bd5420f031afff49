"""Machine code on disk: a private folder for everything that code depends on, and a digest before every piece."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from aclnn.base.folder import PrivateFolder

log = logging.getLogger("aclnn")

_HERE = Path(__file__).parent.parent
_AROUND = ("abi.py", "code_cache.py", "entry.py", "isa.py", "jit.py", "linked.py")  # what makes code of sources


def fingerprint(*made_with: str) -> str:
    """A name for code that is made of today's sources with these compilers, for this processor."""
    made_from = hashlib.sha256("\n".join(made_with).encode())
    for source in sorted([*(_HERE / "source").glob("*.py"), *(_HERE / "native" / name for name in _AROUND)]):
        made_from.update(source.name.encode() + source.read_bytes())
    return made_from.hexdigest()[:16]


class CodeCache:
    """The folder of a fingerprint; one that others can write to is as good as none."""

    def __init__(self, fingerprint: str):
        self._fingerprint = fingerprint
        self._folder: PrivateFolder | None = None
        try:
            self._folder = PrivateFolder(fingerprint)
        except OSError as error:
            refused = error.errno is None  # not by the operating system: it is there, but others can write to it
            log.log(logging.WARNING if refused else logging.DEBUG, "%s; kernels are compiled anew", error)

    def read(self, key: str) -> bytes | None:
        """The code behind its digest; a damaged, foreign or unreadable file counts as absent."""
        try:
            raw = self._folder.read(key) if self._folder else b""
        except OSError:
            return None
        return raw[32:] if raw[:32] == digest(self._fingerprint, key, raw[32:]) else None

    def write(self, key: str, code: bytes) -> None:
        try:
            if self._folder:
                self._folder.write(key, digest(self._fingerprint, key, code) + code)
        except OSError as error:
            log.debug("kernel cache not written: %s", error)


def digest(fingerprint: str, key: str, code: bytes) -> bytes:
    return hashlib.sha256(f"{fingerprint} {key}\n".encode() + code).digest()
