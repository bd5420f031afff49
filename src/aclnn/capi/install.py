"""A prefix where programs look for one: copied out of the cache, complete, and removable.

What was put there is listed in a file of its own; nothing else is ever touched.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from aclnn._version import __version__
from aclnn.base.status import invalid, reason
from aclnn.capi import prefix

MANIFEST = "aclnn-cpu.install"
PYACL = Path(__file__).parent / "pyacl" / "acl"

_ARCHITECTURE = f"{platform.machine()}-linux"
_ALIASES = {f"{_ARCHITECTURE}/include": "../include", f"{_ARCHITECTURE}/lib64": "../lib64"}
_VERSIONS = ("version.info", "version.cfg", "opp/version.info", f"{_ARCHITECTURE}/ascend_toolkit_install.info")


def install(built: Path, target: Path) -> Path:
    """Copies a built prefix to `target`, which is empty, absent, or an earlier one of ours. Returns its path."""
    target = Path(os.path.abspath(target))
    try:
        _check_free(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".aclnn-install-", dir=target.parent) as scratch:
            whole = Path(scratch) / "prefix"
            _lay_out(built, whole, target)
            if (target / MANIFEST).is_file():
                uninstall(target)
            target.mkdir(exist_ok=True)
            _move_into(whole, target)
    except OSError as error:
        raise invalid(f"nothing can be installed in {target}: {reason(error)}.") from error
    return target


def listed(target: Path) -> list[str]:
    """What `install` has put there."""
    return (target / MANIFEST).read_text(encoding="utf-8").splitlines()


def uninstall(target: Path) -> list[Path]:
    """Removes what `install` has put there. Returns what is left, which was never ours."""
    target = Path(os.path.abspath(target))
    try:
        lines = listed(target)
    except (OSError, UnicodeDecodeError):
        if not target.exists():
            raise invalid(f"{target} is not there; nothing was removed.") from None
        raise invalid(f"{target} was not made by `aclnn flags --install`; nothing was removed.") from None
    try:
        for line in lines:
            _remove(target, line)
        (target / MANIFEST).unlink()
        _remove_empty_folders(target)
    except OSError as error:
        raise invalid(f"{target} cannot be removed whole: {reason(error)}.") from error
    return sorted(p for p in target.rglob("*") if not p.is_dir()) if target.is_dir() else []


def _check_free(target: Path) -> None:
    if (target / MANIFEST).is_file() or not target.exists():
        return
    if not target.is_dir():
        raise invalid(f"{target} is a file; choose a folder.")
    if any(target.iterdir()):
        raise invalid(f"{target} is not empty and not ours; choose another folder, or empty it first.")


def _lay_out(built: Path, whole: Path, target: Path) -> None:
    """The whole prefix in a folder beside its place, for which its paths are written."""
    shutil.copytree(built / "include", whole / "include")
    shutil.copytree(built / "lib64", whole / "lib64", symlinks=True)  # one library under two names
    shutil.copytree(built / "share", whole / "share")
    packages = whole / "python" / "site-packages"
    shutil.copytree(PYACL, packages / "acl", ignore=shutil.ignore_patterns("__pycache__"))
    prefix.write_texts(whole, target, __version__)
    (whole / "set_env.sh").write_text(prefix.environment(target, installed=True), encoding="utf-8")
    for name in _VERSIONS:
        (whole / name).parent.mkdir(parents=True, exist_ok=True)
        (whole / name).write_text(_version())
    for name, points_to in _ALIASES.items():
        (whole / name).symlink_to(points_to)
    ours = sorted(str(p.relative_to(whole)) for p in whole.rglob("*") if p.is_symlink() or not p.is_dir())
    (whole / MANIFEST).write_text("\n".join(ours) + "\n", encoding="utf-8")


def _version() -> str:
    """The version, and which Python has the engine."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"package_name=aclnn-cpu\nversion={__version__}\narch={platform.machine()}\npython={python}\n"


def _move_into(whole: Path, target: Path) -> None:
    """File by file; the list comes first, so that an install that was interrupted can be removed or repeated."""
    os.replace(whole / MANIFEST, target / MANIFEST)
    for line in listed(target):
        (target / line).parent.mkdir(parents=True, exist_ok=True)
        os.replace(whole / line, target / line)


def _remove(target: Path, line: str) -> None:
    """One file of the list, unless the list leads out of the folder."""
    path = target / line
    inside = path.parent.resolve().is_relative_to(target.resolve()) and ".." not in Path(line).parts
    if not inside or Path(line).is_absolute():
        raise invalid(f"{target / MANIFEST} names {line!r}, which is not in {target}; nothing more was removed.")
    if os.path.lexists(path):
        path.unlink()
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)  # Python's own, beside modules that are gone


def _remove_empty_folders(target: Path) -> None:
    folders = [p for p in target.rglob("*") if p.is_dir() and not p.is_symlink()]
    for folder in (*sorted(folders, reverse=True), target):
        if not any(folder.iterdir()):
            folder.rmdir()
