"""Cases as C programs read them (`c/cases.cpp`): a file with one call per line, and what Python makes of each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from aclnn import Tensor
from aclnn.base.format import Format
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import Arg
from tests.harness import call, tensors

SEED = 3


def write(cases: Iterable[Case], file: Path) -> None:
    file.write_text("".join(_line(case) for case in cases), encoding="ascii")


def written(case: Case) -> str:
    """The memory of every output after the call in Python, as `written` in `c/cases.cpp` prints it."""
    filled = fill(case, SEED)
    call(case, filled)
    outputs = (t for n, t in tensors(filled).items() if case.op.by_name[n.partition("[")[0]].out)
    return "".join(t.owner.tobytes().hex() + "/" for t in outputs)


def _line(case: Case) -> str:
    filled = fill(case, SEED)
    words = [_words(arg, filled[arg.name]) for arg in case.op.args]
    return " ".join([case.op.name, str(len(words)), *words]) + "\n"


def _words(arg: Arg, value: Any) -> str:
    if arg.is_tensor:
        kind = "tensor" if arg.kind == "tensor" else "list"
        members = None if value is None else value if isinstance(value, list) else [value]
        count = -1 if members is None else len(members)
        return " ".join([kind, "out" if arg.out else "in", str(count), *(_piece(arg, m) for m in members or ())])
    if arg.kind in ("int_array", "bool_array"):
        kind = "ints" if arg.kind == "int_array" else "flags"
        return " ".join([kind, *map(str, map(int, (-1,) if value is None else (len(value), *value)))])
    if arg.kind == "scalar":
        bits = np.array(value.value).astype(value.dtype.numpy).tobytes()
        return f"scalar {value.dtype.number} x{bits.ljust(16, bytes(1)).hex()}"
    return f"real {float(value).hex()}" if arg.kind == "double" else f"number {int(value)}"


def _piece(arg: Arg, tensor: Tensor | None) -> str:
    if tensor is None:
        return "null 0 2 0 0 0 x"
    spec = tensor.spec
    tag = arg.default_format(spec.rank) if spec.format is Format.UNDEFINED else spec.format
    storage = tensor.owner.size if spec.storage is None else spec.storage
    numbers = (spec.dtype.number, int(tag), spec.offset, storage, spec.rank, *spec.shape, *spec.strides)
    return " ".join(["there", *map(str, numbers), "x" + tensor.owner.tobytes().hex()])
