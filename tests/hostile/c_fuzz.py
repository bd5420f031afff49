"""Builds and runs the programs in `c/`: random histories of the C interface, and memory that ends at any allocation."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aclnn.capi import prefix
from tests.doors.test_c_sanitizers import ENVIRONMENT, compile_all, compiler
from tests.doors.toolchain import built

SOURCES = Path(__file__).parent / "c"
RESULT = Path(__file__).parent / "results" / "c_fuzz.csv"
OBJECTS = Path(__file__).parents[2] / "build" / "tests"
# A size no system has is refused by the library, as malloc refuses it: not a reason to stop.
ASAN = "detect_leaks=0:allocator_may_return_null=1"
SHARED = ("call", "cases", "change", "operators")


def build(program: str, into: Path, *more: str) -> Path:
    """With the library as users have it."""
    options = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", *more, *prefix.compile_flags(built())]
    objects = [str(_object(name, options)) for name in (program, *SHARED)]
    link = [*prefix.link_flags(built()), "-pthread", "-ldl"]
    return _compiled(["g++", *objects, *link, "-o", str(into / program)])


def _object(name: str, options: list[str]) -> Path:
    """A source as object code, compiled once: four programs share most of them."""
    digest = hashlib.sha256(repr(options).encode())
    for path in sorted([SOURCES / f"{name}.cpp", *SOURCES.glob("*.h")]):
        digest.update(path.read_bytes())
    made = OBJECTS / f"{name}-{digest.hexdigest()[:16]}.o"
    if not made.exists():
        OBJECTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OBJECTS) as folder:
            part = _compiled(["g++", *options, "-c", str(SOURCES / f"{name}.cpp"), "-o", f"{folder}/part.o"])
            part.rename(made)  # whole or not at all, whoever else compiles it
    return made


def build_sanitized(into: Path, *more: Path) -> Path:
    """The fuzzer with the whole library under the address and undefined-behaviour sanitizers."""
    ours = [made for made in compile_all("address", into) if not made.endswith("/c_engine.o")]
    sources = [*map(str, more), *(str(SOURCES / f"{name}.cpp") for name in ("fuzz", *SHARED))]
    return _compiled([*compiler("address"), f"-I{into}", *sources, *ours, "-ldl", "-o", str(into / "fuzz")])


def _compiled(command: list[str]) -> Path:
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return Path(command[-1])


def run(command: Sequence[object], timeout: float = 600) -> str:
    """What a program found, or its last line. Python itself leaks at exit: leaks are counted by handles."""
    environment = {**os.environ, **ENVIRONMENT, "ASAN_OPTIONS": ASAN}
    ended = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=timeout, env=environment, errors="replace"
    )
    assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stdout}\n{_without_remarks(ended.stderr)[-6000:]}"
    return ended.stdout.strip()


def _without_remarks(said: str) -> str:
    return re.sub(r"(?m)^aclnn.*\(computed all the same\)\n", "", said)


def fuzz(seconds: int) -> str:
    """New seeds until the time is over; what came of it."""
    with tempfile.TemporaryDirectory(prefix="aclnn-fuzz-") as folder:
        program = build_sanitized(Path(folder))
        first = int.from_bytes(os.urandom(4), "little")
        return run([program, first, 2**31, 300, 3, seconds], timeout=10 * seconds + 600)


def record(said: str) -> None:
    """Keeps the figures of a run for the reliability page."""
    figures = re.findall(r"(\d+) (operator calls|computed|refused|other answers|seconds of processor|seconds)", said)
    lines = [",".join(name for _, name in figures), ",".join(figure for figure, _ in figures)]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """`python -m tests.hostile.c_fuzz SECONDS [record]`, the C half of `make fuzz`."""
    said = fuzz(int(arguments[0]))
    print(said, flush=True)
    if "record" in arguments:
        record(said)


if __name__ == "__main__":
    main(sys.argv[1:])
