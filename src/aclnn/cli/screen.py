"""What commands print with: text, tables and progress, plain where there is no terminal.

Nothing else in `cli/` prints: names that others chose pass here, and a reader that has gone away stops nobody.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TextIO, TypeVar

from rich.box import SIMPLE
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import track
from rich.table import Table

from aclnn.base.text import visible, visible_lines
from aclnn.gen.tables import Table as Rows

T = TypeVar("T")

console = Console(soft_wrap=False)
errors = Console(stderr=True)


def prepare() -> None:
    """A terminal that cannot show a letter shows its number; printing does not fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, end: str = "\n") -> None:
    _print(text, end, sys.stdout)


def complain(text: str) -> None:
    _print(text, "\n", sys.stderr)


def pass_on(text: str) -> None:
    """What another program complained of, with its colours."""
    try:
        print(text, end="", file=sys.stderr)
    except BrokenPipeError:
        _silence(sys.stderr)


def _print(text: str, end: str, stream: TextIO | None) -> None:
    try:
        print(visible_lines(text), end=end, file=stream)
    except BrokenPipeError:  # `aclnn … | head`: nobody reads on, but the exit code is still wanted
        _silence(stream)


def flush() -> bool:
    """Whether all that was printed is out, or nobody wants it; an output that cannot be written is said."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
    except (OSError, ValueError) as error:
        _silence(sys.stdout)
        complain(f"aclnn: the output cannot be written: {error}.")
        return False
    return True


def _silence(stream: TextIO | None) -> None:
    if stream is not None:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())  # what is still buffered goes there when Python ends


def usage_of(error: Any) -> str:
    """What is wrong with a command line, and how it is right."""
    shown = io.StringIO()
    error.show(file=shown)
    return shown.getvalue().rstrip()


def print_table(rows: Rows, title: str = "") -> None:
    """A table with room for words on a terminal; aligned plain lines otherwise, for logs."""
    head, body = rows[0], [tuple(map(visible, row)) for row in rows[1]]
    if not console.is_terminal:
        say(f"{title}:" if title else "", end="\n" if title else "")
        _print_plain([head, *body])
        return
    table = Table(*head, title=title or None, title_justify="left", header_style="bold", box=SIMPLE)
    table.padding = (0, 1, 0, 0)
    for row in body:
        table.add_row(*row)
    console.print(table)


def _print_plain(lines: list[tuple[str, ...]]) -> None:
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (set_cell_size(cell, width) for cell, width in zip(line, widths, strict=True))
        say("  ".join(padded).rstrip())


def progress(items: Iterable[T], total: Sized, label: str) -> Iterator[T]:
    """The items, with a progress bar on a terminal."""
    if not errors.is_terminal:
        yield from items
        return
    yield from track(items, description=label, total=len(total), console=errors, transient=True)
