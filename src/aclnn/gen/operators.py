"""The typed public functions: src/aclnn/_operators.py."""

from __future__ import annotations

from textwrap import fill, indent

from aclnn import ops
from aclnn.contract.model import HIDDEN, Arg, Op

_WIDTH = 116  # of a line, less the four columns that a docstring is indented by

_TYPES = {
    "tensor": "A",
    "tensor_list": "Sequence[A]",
    "scalar": "Number",
    "bool": "bool",
    "double": "float",
    "int_array": "Sequence[int]",
    "bool_array": "Sequence[bool]",
}

_HEAD = '''"""The public operators. Written by `make gen` from the contracts; do not edit."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from aclnn.base.device import Device
from aclnn.runtime.executor import Executor
from aclnn.runtime.operator import Operator

A = TypeVar("A")
Number = float | np.generic

__all__ = {names}
'''


def render() -> str:
    made = ops.all_ops()
    names = "[\n" + "".join(f'    "{n}",\n' for n in sorted(op.python for op in made)) + "]"
    return _HEAD.format(names=names) + "".join(map(_operator, made))


def _operator(op: Op) -> str:
    class_name = op.name.replace("aclnn", "_Aclnn")
    shown = [a for a in op.inputs if a.python != HIDDEN]
    outputs = [_type(a) + (" | None" if a.when is not None else "") for a in op.outputs]
    result = outputs[0] if len(outputs) == 1 else f"tuple[{', '.join(outputs)}]"
    out = "out: Any = None, " if op.fresh else ""
    parameters = f"self, {_parameters(shown)}{out}product: str | Device | None = None, engine: str | None = None"
    given = f"{_given(shown, True)}, {_given(shown, False)}, {'out' if out else None}, product, engine"
    return f'''

class {class_name}(Operator):
    """{op.en}

    {_arguments(shown)}
    """

    def __call__({parameters}) -> {result}:
        return self._apply({given})

    def plan({parameters}, repeatable: bool = False) -> Executor:
        """Phase 1: checks the call, chooses a kernel, and returns the executor that runs it."""
        return self._prepare({given}, repeatable)


{op.python} = {class_name}("{op.name}")
'''


def _given(shown: list[Arg], tensors: bool) -> str:
    """The arguments that are tensors, or those that are not, as a tuple."""
    names = [a.snake for a in shown if a.is_tensor == tensors]
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _parameters(shown: list[Arg]) -> str:
    parts, starred = [], False
    for a in shown:
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(f"{a.snake}: {_type(a)}" + ("" if a.default is ... else f" = {a.default!r}"))
    return "".join(f"{p}, " for p in (*parts, *(() if starred else ("*",))))


def _type(arg: Arg) -> str:
    if arg.kind == "int_array" and arg.python_axes is not None:
        return "Sequence[int] | int"
    if arg.kind == "tensor_list" and arg.out:
        return "list[A]"
    text = _TYPES.get(arg.kind, "int")
    may_be_none = arg.optional or arg.when is not None or arg.default is None
    return f"{text} | None" if may_be_none and not arg.out else text


def _arguments(shown: list[Arg]) -> str:
    """One argument after the other, wrapped as a person would wrap a docstring."""
    wrapped = (fill(f"{a.snake}: {a.en}", _WIDTH, subsequent_indent="    ", break_on_hyphens=False) for a in shown)
    return indent("\n".join(wrapped), "    ").lstrip()
