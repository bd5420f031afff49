"""Arguments of torch's functions by name, and the data behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError
from aclnn.golden.read.msprobe.calls import RecordedCall, Unjudged
from aclnn.golden.read.msprobe.dump import Recorded
from aclnn.golden.texts import Text

NARROW = (FLOAT16, BFLOAT16)
Signature = Mapping[str, Any]  # names in torch's order, with defaults; ... where there is none


@dataclass
class PreparedCall:
    """A unit as a call of one of our operators: its inputs, and the results that the dump has."""

    op: str
    given: dict[str, Any]
    targets: dict[str, Any]
    inputs: tuple[Recorded, ...]  # what went in, to see where it came from
    outputs: dict[str, Recorded] = field(default_factory=dict)
    absent: dict[str, Text] = field(default_factory=dict)  # results that should be there, with reasons
    notes: tuple[Text, ...] = ()
    behind: Recurrence | tuple[PreparedCall, ...] | None = None  # what is behind the results beside the operator alone
    doubt: Text | None = None  # why a wrong result would prove nothing
    other: PreparedCall | None = None  # another way to read the call, where the dump does not say which is right


@dataclass(frozen=True)
class Recurrence:
    """An LSTM whose states were not dumped: they are recomputed, and the bound follows their rounding too.

    Arrays are time-major; parameters are in our operator's order.
    """

    x: Array
    h0: Array
    c0: Array
    params: list[Array]
    layers: int
    directions: int
    batch_sizes: Array | None
    dtype: DType  # what values are stored in on the way
    dy: Array | None = None
    dh: Array | None = None
    dc: Array | None = None


def bound(signature: Signature, call: RecordedCall) -> dict[str, Any]:
    """Positional and keyword arguments by name, with torch's defaults."""
    listed, named = call.arguments()
    aliases = {"self": "input"}
    found = dict(zip(signature, listed, strict=False)) | {aliases.get(n, n): v for n, v in named.items()}
    strangers = found.keys() - signature.keys()
    missing = [n for n, default in signature.items() if default is ... and n not in found]
    if len(listed) > len(signature) or strangers or missing:
        odd = min(strangers, default=missing[0] if missing else f"argument {len(signature)}")
        raise Unjudged(f"its arguments are not those of {call.kind} ({odd})", f"其参数与{call.kind}不符（{odd}）")
    return {**{n: d for n, d in signature.items() if d is not ...}, **found}


def tensor(value: Any, name: str) -> Recorded:
    if not isinstance(value, Recorded):
        raise Unjudged(f"{name} is no tensor in the dump", f"dump中{name}不是张量")
    return value


def first(listed: Sequence[Any], name: str) -> Recorded:
    return tensor(listed[0] if listed else None, name)


def data(call: RecordedCall, recorded: Recorded, name: str) -> Array:
    """The data of a tensor; what is wrong with them is why the call is not judged."""
    try:
        return call.dump.array(recorded)
    except AclnnError as error:
        said = error.message.rstrip(".")
        raise Unjudged(f"{name}: {said}", f"{name}：{said}") from None


def result(call: RecordedCall, value: Any, name: str, prepared: PreparedCall) -> Array | None:
    """A result of the unit, or None with the reason noted in `prepared`."""
    if not isinstance(value, Recorded):
        prepared.absent[name] = Text("it is not in the dump", "dump中没有该输出")
        return None
    try:
        found = data(call, value, name)
    except Unjudged as why:
        prepared.absent[name] = why.why
        return None
    prepared.outputs[name] = value
    return found


def computed_in(inputs: Sequence[Recorded], output: Any) -> DType:
    """The dtype of a call: that of its inputs, or where autocast narrowed them that of its output."""
    if isinstance(output, Recorded) and output.dtype in NARROW:
        return output.dtype
    widest = max((r.dtype for r in inputs), key=lambda d: d.itemsize)
    return widest if len({r.dtype for r in inputs}) == 1 or widest is not FLOAT32 else FLOAT32


def rounded(array: Array, dtype: DType) -> Array:
    """An input as autocast rounds it."""
    with np.errstate(all="ignore"):
        return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)


def narrowed(array: Array | None, dtype: DType, name: str) -> Array | None:
    """A result that autocast widened again is what it was before; one that was never narrow is not judged so."""
    if array is None or array.dtype == dtype.numpy:
        return array
    with np.errstate(all="ignore"):
        small = array.astype(dtype.numpy)
        same = np.array_equal(small.astype(array.dtype), array, equal_nan=True)
    if not same:
        was = array.dtype
        raise Unjudged(f"{name} is {was} but its call was computed in {dtype}", f"{name}是{was}，而该调用以{dtype}计算")
    return small
