"""What commands take from `--arg`: values, and the files of tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aclnn.base.status import invalid
from aclnn.cases.table import parse
from aclnn.contract.model import HIDDEN, Arg, Op
from aclnn.golden.read import containers


def given_arguments(op: Op, texts: list[str]) -> dict[str, Any]:
    """The arguments of `name=value` texts by vendor name: attributes as values, tensors as arrays of files."""
    shown = [a for a in op.inputs if a.python != HIDDEN]
    known = {name: a for a in shown for name in (a.name, a.snake)}
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise invalid(f"--arg {text!r} is not of the form name=value.")
        if name not in known:
            raise invalid(f"{op.name} has no argument {name!r}; its inputs are {', '.join(a.name for a in shown)}.")
        found[known[name].name] = _value(known[name], value)
    return found


def _value(arg: Arg, text: str) -> Any:
    if arg.kind == "tensor_list":
        return [_load_array(part) for part in text.split(",")]
    if arg.kind == "tensor":
        return _load_array(text)
    value = parse(text)
    takes_one = arg.python_axes is not None  # one number for all axes, as in Python
    return (value,) if arg.kind.endswith("_array") and not takes_one and not isinstance(value, tuple) else value


def _load_array(path: str) -> Any:
    """The one array of a file; bfloat16 saved by numpy (|V2) is read as what it is."""
    arrays = containers.read(Path(path)).arrays
    if len(arrays) != 1:
        raise invalid(f"{path} has {len(arrays)} arrays ({', '.join(arrays) or 'none'}); it must have one.")
    (name, array), *_ = arrays.items()
    return containers.as_dtype(array, None, name)
