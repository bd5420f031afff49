"""`aclnn env`: what one pastes into a bug report."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from aclnn import __version__
from aclnn.base import folder, language
from aclnn.base.status import AclnnError
from aclnn.cli.options import Lang
from aclnn.cli.screen import say
from aclnn.golden.texts import many
from aclnn.runtime import settings

_PACKAGES = ("numpy", "ml_dtypes", "numba", "onednn-cpu-gomp", "torch", "typer", "rich")
_VARIABLES = (
    "ACLNN_LANG",
    "ACLNN_PRODUCT",
    "ACLNN_ENGINE",
    "ACLNN_NUM_THREADS",
    "ACLNN_VERBOSE",
    "ACLNN_CHECK",
    "ACLNN_ONEDNN",
    "ACLNN_PYTHON",
    "ACLNN_CACHE_DIR",
    "ACLNN_MAX_ISA",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
    "ONEDNN_MAX_CPU_ISA",
)


def env(lang: Lang = None) -> None:
    """Prints versions, settings and environment variables, one per line."""
    for name, value in facts().items():
        say(f"{name:20} {value}")


def facts() -> dict[str, str]:
    found = {
        "aclnn-cpu": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "product": _setting(lambda: settings.current_product().name),
        "engine": _setting(settings.current_engine),
        "threads": _setting(lambda: str(settings.current_threads())),
        "language": language.asked(),
        "cache": _cache(),
    }
    found |= {package: _version(package) for package in _PACKAGES}
    return found | {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def _cache() -> str:
    """Where native code is kept, and how much of it; whether more can be kept."""
    try:
        place = folder.root()
    except OSError as error:
        return f"unusable: {error}"
    files = [path for path in place.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    writable = next(path for path in (place, *place.parents) if path.exists())
    state = "" if os.access(writable, os.W_OK) else "; it cannot be written: name another with ACLNN_CACHE_DIR"
    return f"{place} ({size / 1e6:.1f} MB in {many(len(files), 'file')}{state})"


def _setting(read: object) -> str:
    try:
        return str(read())  # type: ignore[operator]
    except AclnnError as error:
        return f"unusable: {error.message}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
