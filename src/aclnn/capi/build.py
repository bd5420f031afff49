"""Builds the C++ library on first use and keeps it: a prefix with include, lib64 and set_env.sh, per interpreter."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from aclnn._version import __version__
from aclnn.base.folder import PrivateFolder
from aclnn.base.status import AclnnError, Status, reason
from aclnn.capi import interpreter, prefix
from aclnn.capi.interpreter import Interpreter
from aclnn.capi.signature import contracts_id

HERE = Path(__file__).parent
SOURCES = HERE / "src"
INCLUDE = HERE / "include"

COMPILE = ("-std=c++17", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-pthread")
# nodelete: workers and Python outlive any dlclose. relro and now: a library that others load has no loose ends.
LINK = (
    "-shared",
    "-pthread",
    "-Wl,-soname,libascendcl.so",
    "-Wl,-z,nodelete,-z,defs,-z,relro,-z,now",
    f"-Wl,--version-script={SOURCES / 'exports.map'}",
    "-ldl",
)

Progress = Callable[[int, int], None]
"""Called with the number of files compiled so far and of all files."""


def build(progress: Progress | None = None) -> Path:
    """The prefix that C++ programs compile and link against, built now if it is not there yet."""
    python = interpreter.current()
    if not python.library:
        raise _cannot(interpreter.missing_libpython())
    try:
        home = PrivateFolder("capi").path
    except OSError as error:
        raise _cannot(f"the C++ library has no place to live: {error}.") from error
    made = home / _key(python)
    try:
        if not made.exists():
            with _only_one(home):
                if not made.exists():  # nobody else was faster
                    _build_into(made, python, progress or (lambda done, total: None))
    except OSError as error:
        raise _cannot(f"the C++ library cannot be written to {home}: {reason(error)}.") from error
    return made


def is_built() -> bool:
    """Whether `build` would return at once."""
    try:
        return (PrivateFolder("capi").path / _key(interpreter.current())).exists()
    except OSError:
        return False


def compiler() -> list[str]:
    """The command of the C++ compiler: CXX (`ccache g++`, say), else g++."""
    wanted, *rest = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    found = shutil.which(wanted)
    if found is None:
        hint = "on Debian and Ubuntu it comes with the package g++" if wanted == "g++" else "CXX names it"
        raise _cannot(f"there is no C++ compiler {wanted!r} on the PATH; {hint}.")
    return [found, *rest]


def recorded(python: Interpreter) -> str:
    """The header with what the library remembers of its build."""
    major, minor, patch = (*__version__.split("."), "0", "0")[:3]
    strings = {
        "PYTHON": python.executable,
        "PYTHON_VERSION": python.version,
        "LIBPYTHON": python.library,
        "STDLIB": python.stdlib,
        "ROOTS": python.roots,
        "CONTRACTS": contracts_id(),
    }
    lines = [f"#define ACLNN_CPU_{name} {_quoted(value)}" for name, value in strings.items()]
    numbers = zip(("MAJOR", "MINOR", "PATCH"), (major, minor, patch), strict=True)
    lines += [f"#define ACLNN_CPU_VERSION_{name} {_digits(number)}" for name, number in numbers]
    return "#pragma once\n" + "\n".join(lines) + "\n"


def _build_into(made: Path, python: Interpreter, progress: Progress) -> None:
    """Everything in a folder beside the final one, then one rename: there is a whole prefix or none."""
    with tempfile.TemporaryDirectory(prefix="building-", dir=made.parent) as scratch:
        work, whole = Path(scratch) / "work", Path(scratch) / "prefix"
        work.mkdir()
        (work / "recorded.h").write_text(recorded(python), encoding="utf-8")
        shutil.copytree(INCLUDE, whole / "include")
        (whole / "lib64").mkdir()
        objects = _compile_all(work, progress)
        _run([*compiler(), *map(str, objects), *LINK, "-o", str(whole / "lib64" / "libascendcl.so")])
        prefix.write(whole, made, __version__)
        os.rename(whole, made)


def _compile_all(work: Path, progress: Progress) -> list[Path]:
    sources = sorted(SOURCES.glob("*.cpp"))
    cxx = compiler()
    progress(0, len(sources))

    def compile_one(source: Path) -> Path:
        made = work / f"{source.stem}.o"
        _run([*cxx, *COMPILE, f"-I{INCLUDE}", f"-I{work}", "-c", str(source), "-o", str(made)])
        return made

    objects = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for made in pool.map(compile_one, sources):
            objects.append(made)
            progress(len(objects), len(sources))
    return objects


def _run(command: list[str]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise _cannot(f"the C++ library does not build: {' '.join(command)}\n{ended.stderr.strip()}")


def _key(python: Interpreter) -> str:
    """A name for everything the prefix depends on."""
    digest = hashlib.sha256(repr((python, _compiler_version(), COMPILE, LINK, __version__)).encode())
    ours = [*SOURCES.glob("*.*"), *INCLUDE.rglob("*.h"), Path(prefix.__file__)]
    for path in sorted(ours):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"python{python.version}-{digest.hexdigest()[:16]}"


@cache
def _compiler_version() -> str:
    ended = subprocess.run([*compiler(), "--version"], capture_output=True, text=True)
    return f"{compiler()} {ended.stdout.partition(chr(10))[0]}"


@contextmanager
def _only_one(home: Path) -> Iterator[None]:
    """Lets one process build at a time; the others then find what it built."""
    with (home / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _quoted(text: str) -> str:
    escaped = "".join(f"\\{ord(c):03o}" if c in '"\\' or not " " <= c <= "~" else c for c in text)
    return f'"{escaped}"' if text.isascii() else '"' + "".join(f"\\{b:03o}" for b in text.encode()) + '"'


def _digits(text: str) -> int:
    return int("".join(c for c in text if c.isdigit()) or "0")


def _cannot(sentence: str) -> AclnnError:
    return AclnnError(Status.ACLNN_ERR_INNER, sentence)
