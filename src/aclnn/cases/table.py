"""Tables of cases: one row names an operator and the sizes and attributes of a call.

op,case,dtype,sizes,views,data,inject
aclnnEluBackward,from the output,float16,shape=128x256 is_result=true,"gradOutput=0,1@3",uniform:-2:2,selfOrResult=nan:2

`sizes` are the keyword arguments of the operator's case maker (`<op>_case` in ops/): `name=value` separated by blanks,
with `2x3x4` for a shape, `1,2` for a list, `true`/`false`, and numbers. `views` are strides and offset of a tensor, in
elements. `data` and `inject` say what the inputs hold (see draw.py).
"""

from __future__ import annotations

import csv
import hashlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aclnn import ops
from aclnn.base import device as devices
from aclnn.base import dtype as dtypes
from aclnn.base.device import Device
from aclnn.base.status import AclnnError, invalid, reason
from aclnn.base.tensor import TensorSpec
from aclnn.base.text import visible
from aclnn.cases.draw import whole_number, with_data
from aclnn.contract.cases import Case
from aclnn.golden.read import untrusted

COLUMNS = ("op", "case", "dtype", "product", "sizes", "views", "data", "inject")


@dataclass(frozen=True)
class Row:
    """One line of a table, and the case it stands for."""

    line: int
    name: str
    case: Case
    cells: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """What tells this row from others, whatever line it stands on: it is the same work if the cells are."""
        return hashlib.sha256(repr((self.cells, self.case.device.key)).encode()).hexdigest()[:16]

    @property
    def dtype(self) -> str:
        first = next(spec for arg in self.case.op.inputs for spec in self.case.call.specs(arg.name))
        return first.dtype.name


def read_table(path: Path, device: Device) -> list[Row]:
    """The rows of a CSV file; what is wrong in one is said with its line number."""
    rows = []
    for line, fields in _fields(untrusted.lines(path), path):
        try:
            rows.append(_row(line, fields, device))
        except AclnnError as error:
            raise invalid(f"{path}, line {line}: {error.message}") from None
    if not rows:
        raise invalid(f"{path} has no case; a row is: {','.join(COLUMNS)}.")
    return rows


def _fields(text: list[str], path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    lines = [(i, line) for i, line in enumerate(text, 1) if line.strip() and not line.startswith("#")]
    table = list(_cells(lines, path))
    head = [h.strip() for h in table[0][1]] if table else []
    unknown = [h for h in head if h not in COLUMNS]
    if "op" not in head or unknown:
        raise invalid(f"{path} has the columns {', '.join(head) or '(none)'}; they must be among {', '.join(COLUMNS)}.")
    for line, cells in table[1:]:
        if len(cells) > len(head):
            raise invalid(
                f"{path}, line {line}: {len(cells)} cells under {len(head)} columns; quote a cell with commas."
            )
        yield line, dict(zip(head, (c.strip() for c in cells), strict=False))


def _cells(lines: list[tuple[int, str]], path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row, with the line it begins on: a quoted cell may go over several."""
    reader, used = csv.reader(line + "\n" for _, line in lines), 0
    try:
        for cells in reader:
            yield lines[used][0], cells
            used = reader.line_num
    except csv.Error as error:
        raise invalid(f"{path} is no table: {error}.") from None


def _row(line: int, fields: dict[str, str], device: Device) -> Row:
    op = ops.find(fields["op"])
    sizes = dict(_assignments(fields.get("sizes", "")))
    if fields.get("dtype"):
        sizes["dtype"] = fields["dtype"]
    if fields.get("product"):
        device = devices.find(fields["product"])
    maker = ops.case_maker(op)
    known = inspect.signature(maker, eval_str=True).parameters
    arguments = {name: _value(name, text, known) for name, text in sizes.items()}
    try:
        case = maker(**arguments, device=device)
    except AclnnError:
        raise
    except Exception as error:  # a maker that is fed garbage may raise anything
        raise invalid(f"these sizes make no {op.name} case: {reason(error)}.") from None
    case = with_data(_with_views(case, fields.get("views", "")), fields.get("data", ""), fields.get("inject", ""))
    return Row(line, visible(fields.get("case") or f"line {line}"), case, tuple(sorted(fields.items())))


def _with_views(case: Case, text: str) -> Case:
    """The case with some tensors laid out otherwise: `name=strides@offset`."""
    changed: dict[str, Any] = {}
    for name, layout in _assignments(text):
        spec = case.values.get(name)
        listed, _, offset = layout.partition("@")
        strides = parse(f"{listed},") if listed else ()
        if not isinstance(spec, TensorSpec):
            raise invalid(f"{case.op.name} has no tensor {name!r} here.")
        if len(strides) != spec.rank or not all(isinstance(s, int) for s in strides):
            raise invalid(f"{name} has rank {spec.rank}, so it needs {spec.rank} strides, not {listed!r}.")
        changed[name] = spec._replace(strides=strides, offset=_offset(offset), storage=None)
    return case.but(case.note, **changed) if changed else case


def _offset(text: str) -> int:
    offset = whole_number(text or "0")
    if offset is None:
        raise invalid(f"an offset is {text!r}; it must be a whole number of elements.")
    return offset


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split():
        name, sign, value = part.partition("=")
        if not sign or not value:
            raise invalid(f"{part!r} is not of the form name=value.")
        yield name, value


def _value(name: str, text: str, known: Any) -> Any:
    if name not in known or name == "device":
        choices = ", ".join(k for k in known if k != "device")
        raise invalid(f"there is no size {name!r}; choose among {choices}.")
    if name == "dtype":
        return _dtype(text)
    parsed = parse(text)
    wants_tuple = "tuple" in str(known[name].annotation)
    wants_number = "int" in str(known[name].annotation).replace("tuple[int", "")
    if wants_tuple and not isinstance(parsed, tuple) and not (wants_number and isinstance(parsed, int)):
        return (parsed,)
    return parsed


def _dtype(text: str) -> dtypes.DType:
    found = dtypes.by_name(text)
    if found is None:
        raise invalid(f"there is no dtype {text!r}; choose among {', '.join(d.name for d in dtypes.STORED)}.")
    return found


def parse(text: str) -> Any:
    """A value as tables and command lines write it.

    >>> parse("0x3"), parse("1,2"), parse("true"), parse("1.5"), parse("scalar")
    ((0, 3), (1, 2), True, 1.5, ())
    """
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("none", "null"):
        return None
    if lowered in ("scalar", "()"):
        return ()
    for separator in ("x", ","):
        if separator in lowered:
            return tuple(parse(part) for part in lowered.split(separator) if part)
    try:
        return int(lowered)
    except ValueError:
        pass
    try:
        return float(lowered)
    except ValueError:
        raise invalid(f"{text!r} is not a number, a shape (2x3), a list (1,2) or true/false.") from None
