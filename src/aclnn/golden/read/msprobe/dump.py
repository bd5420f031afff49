"""A dump on disk: dump.json with the entries in order of execution, stack.json, construct.json, and files of tensors.

Everything comes through the untrusted. Of dump.json only the entries that somebody asks for are kept, so that one of a
whole training step of a large model takes no more memory than its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aclnn.base import dtype as dtypes
from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.base.run_once import kept
from aclnn.base.status import invalid
from aclnn.base.text import visible
from aclnn.golden.read import containers, untrusted

DESCRIPTION, TENSORS = "dump.json", "dump_tensor_data"
LONGEST_DESCRIPTION = 256 * 2**20  # bytes of dump.json, stack.json and construct.json
_DEEPEST = 3  # folders between what is named and a dump.json: step, rank
_NOT_THE_USERS = re.compile(r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3|<frozen")
_FRAME = re.compile(r"File (?P<file>.+?), line (?P<line>\d{1,9}), in [^,]+, *\n? *(?P<code>.*)", re.DOTALL)


class Recorded(NamedTuple):
    """A tensor that a dump speaks of; `file` is None where only numbers about it were kept."""

    dtype: DType
    shape: tuple[int, ...]
    file: str | None
    requires_grad: bool
    numbers: tuple[Any, ...]  # Max, Min, Mean, Norm


class Place(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Dump:
    """One dump.json and what lies beside it."""

    folder: Path
    entries: Mapping[str, Any]  # those that were asked for, in order of execution

    def array(self, recorded: Recorded) -> Array:
        """The data of a tensor, mapped; a sentence where they are not there or not what dump.json says."""
        file = recorded.file
        if file is None:
            raise invalid("it has no data, only statistics; dump with task tensor.")
        path = self.folder / TENSORS / file
        if Path(file).name != file or not untrusted.is_inside(path, self.folder):
            raise invalid(f"{visible(file)!r} leads outside of the dump.")
        if untrusted.is_missing(path):
            raise invalid(f"its file {file} is missing.")
        arrays = containers.read(path).arrays
        if len(arrays) != 1:
            raise invalid(f"{path} has {len(arrays)} tensors; a dump has one in each file.")
        array = containers.as_dtype(next(iter(arrays.values())), recorded.dtype, file)
        if array.shape != recorded.shape:
            raise invalid(f"{file} has shape {list(array.shape)} but dump.json says {list(recorded.shape)}.")
        return array

    @kept
    def parents(self) -> Mapping[str, str]:
        """Of each call the module it was made in, as far as construct.json says it."""
        found = _beside(self.folder, "construct.json")
        parents = {n: p[0] if isinstance(p, list) and p else p for n, p in found.items()}
        return {name: parent for name, parent in parents.items() if isinstance(parent, str)}

    @kept
    def frames(self) -> Mapping[str, list[Any]]:
        """Of each call the lines of code it came from, the innermost first."""
        found: dict[str, list[Any]] = {}
        for name, value in _beside(self.folder, "stack.json").items():
            if not isinstance(value, list):
                continue
            if len(value) == 2 and all(isinstance(part, list) for part in value):  # calls that share their frames
                found |= {call: value[1] for call in value[0] if isinstance(call, str)}
            else:
                found[name] = value
        return found

    def place(self, name: str) -> Place | None:
        """The innermost line that is neither of a library nor of Python."""
        for frame in self.frames.get(name, ()):
            found = _FRAME.match(frame) if isinstance(frame, str) and len(frame) < 10_000 else None
            if found and not _NOT_THE_USERS.search(found["file"]):
                code = visible(found["code"].strip().partition("\n")[0])[:200]
                return Place(visible(found["file"]), int(found["line"]), code)
        return None


def find(path: Path) -> list[Path]:
    """The folders with a dump.json: the one that is named, or those below it, steps and ranks by number."""
    if path.name == DESCRIPTION and not untrusted.is_folder(path):
        return [path.parent]
    if not untrusted.is_folder(path):
        return []
    return sorted(_below(path, _DEEPEST), key=_by_number)


def _below(path: Path, depth: int) -> Iterator[Path]:
    if not untrusted.is_missing(path / DESCRIPTION):
        yield path
    elif depth:
        for entry in untrusted.entries(path):
            if entry.name != TENSORS and untrusted.is_folder(entry) and not entry.is_symlink():
                yield from _below(entry, depth - 1)


def _by_number(path: Path) -> list[tuple[int, str]]:
    """step2 before step10."""
    return [(int(n or 0), s) for part in path.parts for s, n in re.findall(r"(\D*)(\d*)", part) if s or n]


def load(folder: Path, wanted: Callable[[str], bool]) -> Dump:
    """The dump in a folder, with the entries whose names are wanted."""
    path = folder / DESCRIPTION
    text = untrusted.text(path, LONGEST_DESCRIPTION)
    head: dict[str, Any] = {}
    entries: dict[str, Any] = {}

    def entry(name: str, begin: int) -> int:
        value, end = _decoded(text, begin)
        if wanted(name):
            entries[name] = understood(value)
        return end

    def member(name: str, begin: int) -> int:
        if name == "data" and text.startswith("{", begin):
            return _each_member(text, begin, entry)
        head[name], end = _decoded(text, begin)
        return end

    with untrusted.refusals(path):
        _each_member(text, _past_blanks(text, 0), member)
        if head.get("framework", "pytorch") != "pytorch":
            raise ValueError(f"its framework is {containers.brief(head['framework'])}; only pytorch is understood")
        return Dump(folder, entries)


_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\n\r]*")


def _decoded(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _each_member(text: str, at: int, visit: Callable[[str, int], int]) -> int:
    """Goes through the members of a JSON object; `visit` gets a name and where its value begins, and says its end."""
    if not text.startswith("{", at):
        raise ValueError("it is no JSON object")
    at, seen = _past_blanks(text, at + 1), set[str]()
    while not text.startswith("}", at):
        name, at = _decoded(text, at)
        at = _past_blanks(text, at)
        if not isinstance(name, str) or not text.startswith(":", at):
            raise ValueError(f"a name and a value are expected at letter {at}")
        if name in seen:
            raise ValueError(f"it says {containers.brief(name)} twice")
        seen.add(name)
        at = _past_blanks(text, visit(name, _past_blanks(text, at + 1)))
        if text.startswith(",", at):
            at = _past_blanks(text, at + 1)
        elif not text.startswith("}", at):
            raise ValueError(f"it ends or breaks off at letter {at}")
    return at + 1


def _past_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _beside(folder: Path, name: str) -> dict[str, Any]:
    """What a further file says; it helps, but nothing depends on it."""
    path = folder / name
    if untrusted.is_missing(path):
        return {}
    with untrusted.refusals(path):
        found = _decoded(untrusted.text(path, LONGEST_DESCRIPTION), 0)[0]
        return found if isinstance(found, dict) else {}


def understood(value: Any) -> Any:
    """An entry with tensors as Recorded and numbers as themselves; lists and other dictionaries stay."""
    if isinstance(value, list):
        return [understood(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "torch.Tensor" or (isinstance(value.get("dtype"), str) and "shape" in value):
        return _recorded(value)
    if value.keys() == {"type", "value"}:
        return value["value"]
    return {str(name): understood(one) for name, one in value.items()}


def _recorded(value: dict[str, Any]) -> Recorded | None:
    shape, file = value.get("shape"), value.get("data_name")
    dtype = dtypes.by_name(str(value.get("dtype")).removeprefix("torch."))
    if dtype is None or dtype.numpy is None:
        return None  # a type that none of our operators takes
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"a tensor has shape {containers.brief(shape)}; it must be a list of sizes")
    numbers = tuple(value.get(name) for name in ("Max", "Min", "Mean", "Norm"))
    learns = value.get("requires_grad") is True
    return Recorded(dtype, tuple(shape), file if isinstance(file, str) else None, learns, numbers)
