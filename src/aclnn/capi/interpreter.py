"""What the C++ library has to know about a Python environment to start it: recorded at build time, or asked for."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple


class Interpreter(NamedTuple):
    """A Python environment."""

    version: str  # 3.11
    executable: str
    library: str  # the shared libpython; empty if there is none
    stdlib: str
    roots: str  # folders that hold the packages the engine imports, separated by colons


def current() -> Interpreter:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stdlib = sysconfig.get_path("stdlib")
    return Interpreter(version, sys.executable, str(libpython() or ""), stdlib, os.pathsep.join(_roots()))


def describe() -> None:
    """Prints one field per line, for the library to read when ACLNN_PYTHON names this Python."""
    print(*current(), sep="\n")


def libpython() -> Path | None:
    """The shared library of this Python."""
    names = dict.fromkeys(n for n in map(sysconfig.get_config_var, ("INSTSONAME", "LDLIBRARY")) if n and ".so" in n)
    names |= {f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0": None}
    return next((path for folder in _library_folders() for name in names if (path := folder / name).is_file()), None)


def missing_libpython() -> str:
    """The sentence for a Python without one, with the package that brings it."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"this Python ({sys.executable}) has no shared libpython{version}, which C++ programs need to run operators; "
        f"on Debian and Ubuntu it comes with the package libpython{version}."
    )


def _library_folders() -> Iterator[Path]:
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for folder in (sysconfig.get_config_var("LIBDIR"), f"{sys.base_prefix}/lib", f"{sys.base_prefix}/lib64"):
        if folder:
            yield Path(folder)
            yield Path(folder) / multiarch


def _roots() -> list[str]:
    found = (find_spec(name) for name in ("aclnn", "numpy", "ml_dtypes"))
    folders = [spec.submodule_search_locations[0] for spec in found if spec and spec.submodule_search_locations]
    return list(dict.fromkeys(str(Path(folder).parent) for folder in folders))
