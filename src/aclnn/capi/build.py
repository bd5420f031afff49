"""Builds the C++ library on first use and keeps it: a prefix with include, lib64 and set_env.sh, per interpreter."""

from __future__ import annotations

import hashlib
import os
import platform
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
from aclnn.base.folder import PrivateFolder, is_private
from aclnn.base.status import AclnnError, Status, reason
from aclnn.capi import interpreter, prefix
from aclnn.capi.interpreter import Interpreter
from aclnn.capi.signature import contracts_id

HERE = Path(__file__).parent
SOURCES = (HERE / "src", HERE / "generated")
"""Folders of C++ that people wrote, and of what `make gen` writes."""
INCLUDES = (HERE / "include", HERE / "generated" / "include")
"""The public headers, likewise."""

COMPILE = ("-std=c++17", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-pthread")
# nodelete: workers and Python outlive any dlclose. relro and now: a library that others load has no loose ends.
LINK = (
    "-shared",
    "-pthread",
    "-Wl,-soname,libascendcl.so",
    "-Wl,-z,nodelete,-z,defs,-z,relro,-z,now",
    f"-Wl,--version-script={HERE / 'src' / 'exports.map'}",
    "-ldl",
)

_UNFINISHED = "building-"
_NAMES = {"Darwin": "macOS"}  # as people call a system, where it calls itself otherwise

Progress = Callable[[int, int], None]
"""Called with the number of files compiled so far and of all files."""


def build(progress: Progress | None = None) -> Path:
    """The prefix that C++ programs compile and link against, built now if it is not there yet."""
    _need_linux()
    python = interpreter.current()
    if not python.library:
        raise _cannot(interpreter.missing_libpython())
    try:
        home = PrivateFolder("capi")
    except OSError as error:
        raise _cannot(f"the C++ library has no place to live; name a folder with ACLNN_CACHE_DIR: {error}.") from error
    made = home.path / _key(python)
    try:
        with _anchored(home) as here:
            kept = here / made.name
            if not is_private(kept):
                with _only_one(here):
                    _sweep(here)
                    if not is_private(kept):  # nobody else was faster
                        _build_into(kept, made, python, progress or (lambda done, total: None))
            if not made.samefile(kept):
                raise _cannot(f"{made} is not what was built there; others can rename the folders above it.")
    except OSError as error:
        raise _cannot(f"the C++ library cannot be kept in {home.path}: {reason(error)}.") from error
    return made


def is_built() -> bool:
    """Whether `build` would return at once."""
    _need_linux()
    try:
        with _anchored(PrivateFolder("capi")) as here:
            return is_private(here / _key(interpreter.current()))
    except OSError:
        return False


def compiler() -> list[str]:
    """The command of the C++ compiler: CXX (`ccache g++`, say), else g++."""
    _need_linux()
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


def every_source() -> list[Path]:
    """The C++ files of the library."""
    return sorted(path for folder in SOURCES for path in folder.glob("*.cpp"))


def include_flags() -> list[str]:
    """Where those files find headers, the library's own and the public ones."""
    return [f"-I{folder}" for folder in (*SOURCES, *INCLUDES)]


def _need_linux() -> None:
    """Linking, the names of libraries and what is asked of /proc are Linux's."""
    system = platform.system()
    if system != "Linux":
        here = _NAMES.get(system, system)
        raise _cannot(
            f"C++ programs can be built and run on Linux only, and this is {here}; Python, PyTorch and the other "
            "commands work here."
        )


@contextmanager
def _anchored(home: PrivateFolder) -> Iterator[Path]:
    """A path to the folder that stays right whoever renames what is above it, also for the compiler."""
    with home.opened() as folder:
        yield Path(f"/proc/{os.getpid()}/fd/{folder}")


def _build_into(kept: Path, made: Path, python: Interpreter, progress: Progress) -> None:
    """Everything in a folder beside the final one, then one rename: there is a whole prefix or none."""
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=kept.parent) as scratch:
        work, whole = Path(scratch) / "work", Path(scratch) / "prefix"
        work.mkdir()
        (work / "recorded.h").write_text(recorded(python), encoding="utf-8")
        for headers in INCLUDES:
            shutil.copytree(headers, whole / "include", dirs_exist_ok=True)
        shutil.copytree(HERE / "share", whole / "share" / "aclnn")
        (whole / "lib64").mkdir()
        objects = _compile_all(work, progress)
        run([*compiler(), *map(str, objects), *LINK, "-o", str(whole / "lib64" / "libascendcl.so")])
        (whole / "lib64" / prefix.SAME).symlink_to("libascendcl.so")
        for name in prefix.OTHER_NAMES:
            run([*compiler(), *prefix.facade(name, whole / "lib64")])
        prefix.write_texts(whole, made, __version__)
        _for_the_owner_alone(whole)
        if os.path.lexists(kept):  # not private, else it would have served
            os.rename(kept, Path(scratch) / "refused")
        os.rename(whole, kept)


def _for_the_owner_alone(whole: Path) -> None:
    """Whatever the umask was: nobody else can write to what programs load."""
    for path in (whole, *whole.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)


def _sweep(here: Path) -> None:
    """Removes what killed builds left; they held the lock that is ours now."""
    for dead in here.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(dead, ignore_errors=True)


def _compile_all(work: Path, progress: Progress) -> list[Path]:
    sources = every_source()
    cxx = compiler()
    progress(0, len(sources))

    def compile_one(source: Path) -> Path:
        made = work / f"{source.stem}.o"
        run([*cxx, *COMPILE, *include_flags(), f"-I{work}", "-c", str(source), "-o", str(made)])
        return made

    objects = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for made in pool.map(compile_one, sources):
            objects.append(made)
            progress(len(objects), len(sources))
    return objects


def run(command: list[str]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise _cannot(f"the C++ library does not build: {' '.join(command)}\n{ended.stderr.strip()}")


def _key(python: Interpreter) -> str:
    """A name for everything the prefix depends on."""
    depends_on = (python, _compiler_version(), COMPILE, LINK, __version__, contracts_id())
    digest = hashlib.sha256(repr(depends_on).encode())
    folders = (*SOURCES, *INCLUDES, HERE / "share")
    ours = {Path(prefix.__file__), *(path for folder in folders for path in folder.rglob("*.*"))}
    for path in sorted(ours):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"python{python.version}-{digest.hexdigest()[:16]}"


@cache
def _compiler_version() -> str:
    ended = subprocess.run([*compiler(), "--version"], capture_output=True, text=True)
    return f"{compiler()} {ended.stdout.partition(chr(10))[0]}"


@contextmanager
def _only_one(here: Path) -> Iterator[None]:
    """Lets one process build at a time; the others then find what it built."""
    import fcntl  # Windows has none

    lock = os.open(here / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _quoted(text: str) -> str:
    escaped = "".join(f"\\{ord(c):03o}" if c in '"\\' or not " " <= c <= "~" else c for c in text)
    return f'"{escaped}"' if text.isascii() else '"' + "".join(f"\\{b:03o}" for b in text.encode()) + '"'


def _digits(text: str) -> int:
    return int("".join(c for c in text if c.isdigit()) or "0")


def _cannot(sentence: str) -> AclnnError:
    return AclnnError(Status.ACLNN_ERR_INNER, sentence)
