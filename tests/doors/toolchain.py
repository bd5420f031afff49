"""What the tests of the C door share: the built prefix, compiling and running a program, the documents' samples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from aclnn.capi import interpreter, prefix
from aclnn.capi.build import build

PROGRAMS = Path(__file__).parent / "c"
SEEDS = Path(__file__).resolve().parents[3] / "shared" / "seeds"

needs_compiler = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None or interpreter.libpython() is None,
    reason="the C door needs Linux, g++ and a shared libpython",
)

WAYS_TO_LEAVE = (
    "in_flight",
    "freed_in_flight",
    "exit_from_another_thread",
    "static_destructor",
    "fork_after_use",
    "fork_before_use",
    "fork_at_work",
    "fork_while_others_wait",
    "fork_while_starting",
    "fork_in_a_callback",
    "fork_in_a_host_function",
    "first_thread_ends",
)
"""The modes of exits.cpp. One more, fork_anywhere, is not for sanitizers: their allocators do not survive it."""

SAMPLES = {
    "elu": "004",
    "convolution": "003",
    "conv_tbc": "002",
    "lstm": "000",
    "lstm_cell": "001",
}


@cache
def built() -> Path:
    """The prefix, built once and kept in the user's cache."""
    return build()


def compile_program(source: Path, into: Path, *options: str, link: Sequence[str] | None = None) -> Path:
    """Compiles a program as a user would; any warning about our headers is an error."""
    program = into / source.stem
    link = prefix.link_flags(built()) if link is None else link
    command = ["g++", "-Wall", "-Wextra", "-Werror", *options, str(source), *prefix.compile_flags(built()), *link]
    ended = subprocess.run([*command, "-pthread", "-ldl", "-o", str(program)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return program


def run_program(
    command: Sequence[str | Path], env: Mapping[str, str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs a program; what it may not do is hang."""
    return subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=timeout)


def compile_and_run(source: Path, into: Path, *options: str, **env: str) -> str:
    """What a program prints, after it ended with 0."""
    ended = run_program([compile_program(source, into, *options)], {**os.environ, **env})
    assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def sample(name: str, into: Path) -> Path:
    """The C++ program at the end of an operator's document, as it is."""
    found = sorted(SEEDS.glob(f"{SAMPLES[name]}_*.txt"))
    if not found:
        pytest.skip("the operator documents, whose programs these are, do not lie beside the checkout")
    text = found[0].read_text(encoding="utf-8", errors="surrogateescape")
    (program,) = [b for b in re.findall(r"```[Cc]pp\n(.*?)```", text, re.DOTALL) if "int main" in b]
    source = into / f"sample_{name}.cpp"
    source.write_text(program, encoding="utf-8", errors="surrogateescape")
    return source


def numbers(printed: str) -> list[float]:
    """The numbers behind `is:`, line by line."""
    return [float(n) for n in re.findall(r"is: (\S+)", printed)]
