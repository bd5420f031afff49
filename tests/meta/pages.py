"""Reading pages as a program: their headings and blocks, what code promises to print, and following a page by hand."""

from __future__ import annotations

import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?:\*([^\n*]+)\*\n\n)?```([\w+]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INCLUDED = re.compile(
    r"^```\{literalinclude\} (?:\.\./)*(\S+)\n:language: (\S+)\n:caption: (.*)\n(?=```$)", re.MULTILINE
)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_PROMISE = re.compile(r"(?<=\S\n)(?:# .*(?:\n|\Z))+")
_MARK = "@@ block"


class Block(NamedTuple):
    """A block of code: its language, the file it is to be saved as ("" if none), and its text."""

    language: str
    caption: str
    text: str


class Heading(NamedTuple):
    level: int
    text: str


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """Blocks of code, among them the files of the project that a page includes under a caption."""
    whole = _INCLUDED.sub(lambda m: f"*{m[3]}*\n\n```{m[2]}\n{read(ROOT / m[1])}", page)
    return [Block(m[2], m[1] or "", m[3]) for m in _FENCE.finditer(whole)]


def prose(page: str) -> str:
    """The page without its code."""
    return _FENCE.sub("", page)


def headings(page: str) -> list[Heading]:
    return [Heading(len(m[1]), m[2]) for m in _HEADING.finditer(prose(page))]


def sections(page: str) -> dict[str, str]:
    """The text under each heading of the second level; blocks may have lines that look like headings."""
    starts = [(m.start(), h.text) for h in headings(page) for m in re.finditer(f"^## {re.escape(h.text)}$", page, re.M)]
    ends = [start for start, _ in starts[1:]] + [len(page)]
    return {title: page[start:end] for (start, title), end in zip(starts, ends, strict=True)}


def promised(code: str) -> list[str]:
    """What code says it prints: comments directly under a line of code. Comments after a blank line are prose."""
    return [line.removeprefix("# ") for lines in _PROMISE.findall(code) for line in lines.splitlines()]


def printed_by(code: str, name: str) -> list[str]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
    return printed.getvalue().splitlines()


def follow(steps: Iterable[Block], folder: Path) -> None:
    """Does what a page says: saves files under their captions, runs shell blocks in one shell, looks at the output."""
    steps = list(steps)
    for step in steps:
        if step.caption:
            (folder / step.caption).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.caption).write_text(step.text, encoding="utf-8")
    script = "".join(f"echo '{_MARK}'\n{step.text}" for step in _commands(steps))
    ended = subprocess.run(["bash", "-e"], input=script, cwd=folder, env=_environment(), capture_output=True, text=True)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    outputs = ended.stdout.split(f"{_MARK}\n")[1:]
    for wanted, output in _expectations(steps, outputs):
        assert looks_like(output, wanted), f"the page says\n{wanted}\nbut it was\n{output}"


def _environment() -> dict[str, str]:
    """This Python first on the PATH, and one thread: the other cores have tests of their own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1", "ACLNN_NUM_THREADS": "1"}


def _commands(steps: list[Block]) -> list[Block]:
    return [step for step in steps if step.language == "sh" and not step.caption]


def _expectations(steps: list[Block], outputs: list[str]) -> Iterator[tuple[str, str]]:
    """A block of text directly behind a block of commands is what they print."""
    left = iter(outputs)
    output = None
    for step in steps:
        if step.language == "text" and not step.caption and output is not None:
            yield step.text, output
        output = next(left) if step in _commands([step]) else None


def looks_like(output: str, wanted: str) -> bool:
    """As in doctests: `...` stands for anything, runs of blanks are alike."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(wanted, output, flags)
