"""What commands print with: tables and progress, plain where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from rich.box import SIMPLE
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import track
from rich.table import Table

from aclnn.gen.tables import Table as Rows

T = TypeVar("T")

console = Console(soft_wrap=False)
errors = Console(stderr=True)


def print_table(rows: Rows, title: str = "") -> None:
    """A table with room for words on a terminal; aligned plain lines otherwise, for logs."""
    head, body = rows
    if not console.is_terminal:
        print(f"{title}:" if title else "", end="\n" if title else "")
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
        print("  ".join(padded).rstrip())


def progress(items: Iterable[T], total: Sized, label: str) -> Iterator[T]:
    """The items, with a progress bar on a terminal."""
    if not errors.is_terminal:
        yield from items
        return
    yield from track(items, description=label, total=len(total), console=errors, transient=True)
