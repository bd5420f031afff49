"""LSTM and LSTMCell modules: what their parameters' names and shapes say, and what has to be tried.

A cell is an LSTM of one step. Packed sequences are padded again: positions that do not exist are 0 on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aclnn import ops
from aclnn.base.dtype import DType
from aclnn.base.geometry import Array
from aclnn.golden.read.msprobe.arguments import PreparedCall, Recurrence, computed_in, data, narrowed, result, rounded
from aclnn.golden.read.msprobe.calls import RecordedCall, Unjudged
from aclnn.golden.read.msprobe.dump import Recorded
from aclnn.golden.texts import Text
from aclnn.ops.lstm import SAVED
from aclnn.runtime.reference import evaluate

_PARAMETER = re.compile(r"(weight|bias)_(ih|hh)(?:_l(\d{1,4})(_reverse)?)?")
_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@dataclass(frozen=True)
class Reading:
    """One way to read a call: how its axes lie."""

    call: RecordedCall
    batch_first: bool
    dtype: DType  # what it was computed in

    @property
    def is_cell(self) -> bool:
        return self.call.kind == "LSTMCell"


def readings(call: RecordedCall, attributes: Mapping[str, Any], narrow: DType | None) -> list[Reading]:
    """The ways to read a call, the likeliest first; `narrow` is what autocast computes in, in this dump."""
    layers = parameters(call)
    x, *_ = _inputs(call)
    y = _leaf(_outputs(call)[0])
    dtype = computed_in([x, *call.parameters().values()], y)
    axes = [False] if call.kind == "LSTMCell" else _batch_axes(call, x, attributes)
    found = [Reading(call, first, dtype) for first in axes]
    if narrow is not None and dtype.itemsize == 4 and layers:
        found += [replace(reading, dtype=narrow) for reading in found]
    return found


def _batch_axes(call: RecordedCall, x: Recorded, attributes: Mapping[str, Any]) -> list[bool]:
    """Whether the batch is the first axis: the states know the batch; where both axes have its size both are tried."""
    if "batch_first" in attributes:
        return [bool(attributes["batch_first"])]
    hy = _leaf(_outputs(call)[1])
    if len(x.shape) != 3 or hy is None or len(hy.shape) != 3 or _is_packed(call):
        return [False]
    fitting = [first for first in (False, True) if x.shape[0 if first else 1] == hy.shape[1]]
    return fitting or [False]


def parameters(call: RecordedCall) -> list[tuple[str, ...]]:
    """The names of the parameters, layer by layer and direction by direction, in our operator's order."""
    found: dict[tuple[int, int], set[str]] = {}
    for name in call.parameters():
        said = _PARAMETER.fullmatch(name)
        if said is None:
            raise Unjudged(
                f"it has a parameter {name}, which aclnnLSTM has not (proj_size)", f"它有aclnnLSTM没有的参数{name}"
            )
        found.setdefault((int(said[3] or 0), int(said[4] is not None)), set()).add(f"{said[1]}_{said[2]}")
    if (
        not found
        or len({frozenset(parts) for parts in found.values()}) != 1
        or not {"weight_ih", "weight_hh"} <= found[0, 0]
    ):
        raise Unjudged("its parameters are not in the dump", "dump中没有它的参数")
    bare = call.kind == "LSTMCell"
    end = {key: "" if bare else f"_l{key[0]}{'_reverse' if key[1] else ''}" for key in found}
    return [tuple(f"{part}{end[key]}" for part in _PARTS if part in found[key]) for key in sorted(found)]


def _leaf(value: Any) -> Recorded | None:
    found = value.get("data") if isinstance(value, dict) else value
    return found if isinstance(found, Recorded) else None


def _is_packed(call: RecordedCall) -> bool:
    listed, _ = call.arguments()
    return bool(listed) and isinstance(listed[0], dict)


def _inputs(call: RecordedCall) -> tuple[Recorded, Recorded | None, Recorded | None]:
    """The input and the initial state; a state that is absent is zeros."""
    listed, named = call.arguments()
    x = listed[0] if listed else named.get("input")
    state = listed[1] if len(listed) > 1 else named.get("hx")
    leaf = _leaf(x)
    if leaf is None:
        raise Unjudged("its input is no tensor in the dump", "dump中其输入不是张量")
    h, c = state if isinstance(state, list) and len(state) == 2 else (None, None)
    return leaf, h if isinstance(h, Recorded) else None, c if isinstance(c, Recorded) else None


def _outputs(call: RecordedCall) -> tuple[Any, Any, Any]:
    """y, h, c of an LSTM; h stands for y of a cell."""
    found = call.results()
    if call.kind == "LSTMCell":
        return (found[0], *found[:2]) if len(found) >= 2 else (None, None, None)
    states = found[1] if len(found) > 1 and isinstance(found[1], list) and len(found[1]) == 2 else (None, None)
    return (found[0] if found else None, *states)


class SequenceLayout:
    """How the tensors of a call lie, and as our operator has them: time first, a batch, nothing packed."""

    def __init__(self, reading: Reading):
        self.reading, call = reading, reading.call
        self.packed, self.order = None, None
        listed, _ = call.arguments()
        if _is_packed(call):
            sizes = listed[0].get("batch_sizes")
            order = listed[0].get("sorted_indices")
            if not isinstance(sizes, Recorded):
                raise Unjudged("the lengths of its packed sequences are not in the dump", "dump中没有变长序列的长度")
            self.packed = np.asarray(data(call, sizes, "batch_sizes"))
            self.order = np.asarray(data(call, order, "sorted_indices")) if isinstance(order, Recorded) else None
            self.mask = np.arange(int(self.packed[0])) < self.packed[:, None]
        self.unbatched = not reading.is_cell and self.packed is None and len(_inputs(call)[0].shape) == 2
        self.flat_cell = reading.is_cell and len(_inputs(call)[0].shape) == 1

    def sequence(self, array: Array) -> Array:
        if self.packed is not None:
            padded = np.zeros((*self.mask.shape, array.shape[-1]), array.dtype)
            padded[self.mask] = array
            return padded
        if self.reading.is_cell:
            return array[None, None] if self.flat_cell else array[None]
        if self.unbatched:
            return array[:, None]
        return array.swapaxes(0, 1) if self.reading.batch_first else array

    def state(self, array: Array) -> Array:
        if self.reading.is_cell:
            return array[None, None] if self.flat_cell else array[None]
        array = array[:, None] if self.unbatched else array
        return array if self.order is None else array[:, self.order]


def recurrence(reading: Reading, layout: SequenceLayout, gradients: bool) -> Recurrence:
    call, dtype = reading.call, reading.dtype
    names = parameters(call)
    x, h0, c0 = _inputs(call)
    sequence = layout.sequence(rounded(data(call, x, "input"), dtype))
    stored = call.parameters()
    params = [rounded(data(call, stored[n], n), dtype) for one in names for n in one]
    directions = 1 + any(n.endswith("_reverse") for one in names for n in one)
    shape = (len(names), sequence.shape[1], params[1].shape[1])
    zero = np.zeros(shape, dtype.numpy)
    h, c = (zero if s is None else layout.state(rounded(data(call, s, "hx"), dtype)) for s in (h0, c0))
    found = Recurrence(sequence, h, c, params, len(names) // directions, directions, layout.packed, dtype)
    if not gradients:
        return found
    grads = _grads(call, len(_outputs(call)) - reading.is_cell)
    zeros = [np.zeros((*sequence.shape[:2], directions * shape[2]), dtype.numpy), *(np.zeros(shape, dtype.numpy),) * 2]
    read = [None if g is None else rounded(data(call, g, "gradient"), dtype) for g in grads]
    dy = zeros[0] if read[0] is None else layout.sequence(read[0])
    dh, dc = (z if g is None else layout.state(g) for z, g in zip(zeros[1:], read[1:], strict=True))
    return replace(found, dy=dy, dh=dh, dc=dc)


def _grads(call: RecordedCall, count: int) -> list[Recorded | None]:
    """Gradients of y, h and c, None where none arrived; of a cell those of h and c."""
    found = [g if isinstance(g, Recorded) else None for g in call.grad_results()]
    found += [None] * (count - len(found))
    if not any(found):
        raise Unjudged("no gradient of its results is in the dump", "dump中没有其输出的梯度")
    return [None, *found[:2]] if call.kind == "LSTMCell" else found[:3]


def forward(reading: Reading) -> PreparedCall:
    layout = SequenceLayout(reading)
    found = recurrence(reading, layout, False)
    made = PreparedCall("aclnnLSTM", _arguments(found), {}, _sources(reading.call), behind=found)
    made.given |= {"hx": [found.h0, found.c0], "batchSizes": found.batch_sizes, "train": False}
    y, h, c = _outputs(reading.call)
    shown = [("output", _leaf(y), layout.sequence), ("hy", h, layout.state), ("cy", c, layout.state)]
    for name, value, laid in shown[1:] if reading.is_cell else shown:
        array = result(reading.call, value, name, made)
        made.targets[name] = None if array is None else laid(_stored(array, reading, name))
    if reading.is_cell:
        made.absent.pop("output", None)
    made.notes = _notes(reading)
    made.doubt = _dropout(found)
    return made


def _stored(array: Array, reading: Reading, name: str) -> Array:
    """Autocast may give back float32 of what it computed in less: then the target stays as it is."""
    if array.dtype.itemsize > reading.dtype.itemsize:
        return array
    kept = narrowed(array, reading.dtype, name)
    assert kept is not None
    return kept


def _dropout(found: Recurrence) -> Text | None:
    if found.layers == 1:
        return None
    return Text(
        "it has several layers, and the dump does not say whether there is dropout between them",
        "它有多层，而dump没有说明层间是否有dropout",
    )


def _notes(reading: Reading) -> tuple[Text, ...]:
    listed = [*reading.call.parameters().values()]
    if all(t.dtype is reading.dtype for t in listed):
        return ()
    return (Text(f"autocast: computed in {reading.dtype}", f"autocast：以{reading.dtype}计算"),)


def _sources(call: RecordedCall) -> tuple[Recorded, ...]:
    return tuple(t for t in (*_inputs(call), *call.parameters().values()) if t is not None)


def _arguments(found: Recurrence) -> dict[str, Any]:
    each = len(found.params) // (found.layers * found.directions)
    return {
        "input": found.x,
        "params": found.params,
        "hasBias": each == 4,
        "numLayers": found.layers,
        "dropout": 0.0,
        "bidirectional": found.directions == 2,
        "batchFirst": False,
    }


def backward(reading: Reading) -> PreparedCall:
    """The gradients of the input and the initial state; those of the parameters stand in an entry of their own."""
    call, layout = reading.call, SequenceLayout(reading)
    found = recurrence(reading, layout, True)
    grads = tuple(g for g in call.grad_results() if isinstance(g, Recorded))
    made = PreparedCall("aclnnLstmBackward", {}, {}, (*grads, *_sources(call)), behind=found)
    names = ("dxOut", "dhPrevOut", "dcPrevOut")
    for name, value in zip(names, _grad_arguments(call), strict=True):
        if value is not ...:
            array = result(call, value, name, made)
            laid = layout.sequence if name == "dxOut" else layout.state
            made.targets[name] = None if array is None else laid(_stored(array, reading, name))
    if not any(t is not None for t in made.targets.values()):
        raise Unjudged("none of its gradients is in the dump", "dump中没有它的任何梯度")
    made.given, made.notes = with_states(found), _notes(reading)
    return made


def with_states(found: Recurrence) -> dict[str, Any]:
    """The arguments of the gradient, its saved states recomputed and rounded as a forward saves them."""
    given = _arguments(found)
    op = ops.find("aclnnLSTM")
    plain = {"input": found.x, "params": found.params, "hx": [found.h0, found.c0], "batch_sizes": found.batch_sizes}
    flags = {"has_bias": given["hasBias"], "num_layers": found.layers, "dropout": 0.0, "train": True}
    flags |= {"bidirectional": found.directions == 2, "batch_first": False}
    lists = evaluate(op, {**plain, **flags})[3:]
    with np.errstate(all="ignore"):
        saved = {n: [s.astype(found.dtype.numpy) for s in one] for n, one in zip(SAVED, lists, strict=True)}
    given |= {**saved, "hx": [found.h0, found.c0], "batchSizesOptional": found.batch_sizes, "train": True}
    return given | {"dy": found.dy, "dh": found.dh, "dc": found.dc}


def _grad_arguments(call: RecordedCall) -> Iterator[Any]:
    """Gradients of x, h0, c0; ... where none is asked for. A module's hook lists those of inputs that ask for one."""
    inputs = _inputs(call)
    listed = [g for g in call.grad_arguments() if g is None or isinstance(g, Recorded)]
    asking = [i for i, t in enumerate(inputs) if t is not None and t.requires_grad]
    present = [i for i, t in enumerate(inputs) if t is not None]
    order = asking if len(listed) == len(asking) else present if len(listed) == len(present) else None
    if order is None:
        raise Unjudged(
            f"it has {len(listed)} gradients for {len(asking)} inputs that ask for one",
            f"有{len(asking)}个输入需要梯度，dump中却有{len(listed)}个",
        )
    found = dict(zip(order, listed, strict=True))
    for i, source in enumerate(inputs):
        value = found.get(i, ...)
        if isinstance(value, Recorded) and source is not None and value.shape != source.shape:
            raise Unjudged("its gradients do not have the shapes of its inputs", "其梯度的形状与输入不符")
        yield ... if value is None and i not in asking else value
