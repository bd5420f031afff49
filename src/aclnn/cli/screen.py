"""What commands print with: text, tables and progress, as wide as the terminal, and plain where there is none.

Nothing else in `cli/` prints: names that others chose pass here, and a reader that has gone away stops nobody.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.progress import track
from rich.text import Text

from aclnn.base import language, layout
from aclnn.base.chinese import translated
from aclnn.base.status import AclnnError
from aclnn.base.text import visible, visible_lines
from aclnn.gen.tables import Table as Rows

T = TypeVar("T")

log = logging.getLogger("aclnn")

console = Console()
errors = Console(stderr=True)

_PLAIN = {"≥": ">=", "≤": "<=", "×": "x", "√": "yes", "…": "...", "·": "-", "−": "-", "–": "-", "’": "'", "Σ": "sum"}
_ROOT, _TIMES = re.compile(r"√(\w+)"), re.compile(r"(?<=\S)·(?=\S)")  # in a formula, where a lone √ is a tick


def prepare() -> None:
    """A terminal that cannot show a letter shows what stands for it, or its number; printing does not fail."""
    codecs.register_error("aclnn", _shown_otherwise)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="aclnn")
    if not any(isinstance(handler, _Warnings) for handler in log.handlers):
        log.addHandler(_Warnings(logging.WARNING))
    if os.environ.get("ACLNN_LANG"):
        language.checked(os.environ["ACLNN_LANG"], "ACLNN_LANG")


class _Warnings(logging.Handler):
    """What the package warns of is for the reader of the terminal: in the same voice as all else."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(f"aclnn: {record.getMessage()}")


def _shown_otherwise(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in letters), error.end


def _showable(text: str, encoding: str) -> str:
    """Formulas in letters that the terminal has; the other letters are looked at one by one when they are encoded."""
    try:
        "√Σ·".encode(encoding)
    except UnicodeEncodeError:
        return _TIMES.sub("*", _ROOT.sub(r"sqrt(\1)", text))
    return text


def say(text: str, end: str = "\n") -> None:
    """Something to be copied: a value, a command, lines that are laid out already."""
    _print(visible_lines(text) + end, sys.stdout)


def tell(text: str) -> None:
    """Sentences, in the reader's language; a terminal gets them folded between words."""
    show(layout.fold(visible_lines(_in_their_language(text)), width()))


def complain(text: str) -> None:
    """The same on stderr."""
    lines = layout.fold(visible_lines(_in_their_language(text)), errors.width if errors.is_terminal else None)
    _print("".join(f"{line.plain}\n" for line in lines), sys.stderr)


def refuse(error: AclnnError) -> None:
    complain(f"aclnn: {error.said(language.current())}")


def _in_their_language(text: str) -> str:
    if language.current() == "en":
        return text
    begun = "aclnn: " if text.startswith("aclnn: ") else ""
    return begun + "\n".join(map(translated, text.removeprefix(begun).split("\n")))


def pass_on(text: str) -> None:
    """What another program complained of, with its colours."""
    _print(text, sys.stderr)


def width() -> int | None:
    """The columns of the terminal; None where there is none, and lines are as long as they are."""
    return console.width if console.is_terminal else None


def show(lines: Iterable[Text]) -> None:
    """Lines that are laid out already, with their colours on a terminal."""
    if not console.is_terminal:
        return say("\n".join(line.plain for line in lines))
    with console.capture() as shown:
        for line in lines:
            console.print(line, soft_wrap=True)
    return _print(shown.get(), sys.stdout)


def _print(text: str, stream: TextIO | None) -> None:
    try:
        print(_showable(text, getattr(stream, "encoding", None) or "utf-8"), end="", file=stream)
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


def print_table(rows: Rows, title: str = "", right: tuple[int, ...] = ()) -> None:
    """A table that fits the terminal; aligned plain lines where there is none, for logs."""
    body = [tuple(map(visible, row)) for row in rows[1]]
    lines = [Text(title, "bold")] if title else []
    show([*lines, *layout.table(rows[0], body, width(), right)])


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items, with a progress bar on a terminal."""
    if not errors.is_terminal:
        yield from items
        return
    yield from track(items, description=label, total=total, console=errors, transient=True)
