"""Where the misses are: the axes of each output by the names people give them, and what the misses have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.contract.call import Call
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.judge.sound import Box
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text, percent

_MOST = 0.9  # of the misses must be in one place …
_HARDLY = 1.25  # times the shortest run is hardly longer: of an even spread, nine tenths are 1.11 times as short
_SMALL = 0.5  # … that is no more than this part of the output …
_LUCK = 1e-4  # … and would gather so many by chance no more often than this

_SPATIAL = {
    1: (Text("column", "列"),),
    2: (Text("row", "行"), Text("column", "列")),
    3: (Text("depth", "深度"), Text("row", "行"), Text("column", "列")),
}
_BATCH, _CHANNEL, _TIME, _HIDDEN = (
    Text("batch", "批"),
    Text("channel", "通道"),
    Text("time step", "时间步"),
    Text("hidden unit", "隐藏单元"),
)
_IN, _OUT = Text("input channel", "输入通道"), Text("output channel", "输出通道")
_TAP, _FEATURE = Text("kernel tap", "卷积核位置"), Text("feature", "特征")
_GROUP, _GATE = Text("group", "组"), Text("gate", "门")
_LAYER = Text("layer and direction", "层与方向")
_GATES = ("i", "f", "g", "o")


class Division(NamedTuple):
    """An axis in parts of equal width: its indexes, the groups of its channels, the gates of its rows."""

    axis: int
    name: Text
    width: int = 1
    labels: tuple[str, ...] = ()


class Map(NamedTuple):
    """What is known of the places of one output."""

    axes: tuple[Text, ...]
    divisions: tuple[Division, ...]
    inner: Box | None = None  # what is not touched by the border of a padded convolution


def map_of(case: LoadedCase | None, output: str, shape: tuple[int, ...]) -> Map:
    """The map of an output; axes without a name are numbered."""
    numbered = tuple(Text(f"axis {i}", f"第{i}轴") for i in range(len(shape)))
    if case is None:
        return Map(numbered, _every_axis(numbered))
    name, call = output.partition("[")[0], case.call
    family = case.op.family
    named = _AXES.get((family, name), numbered)
    axes = named(call, len(shape)) if callable(named) else named[: len(shape)]
    return Map(axes, _every_axis(axes) + tuple(_parts(family, name, call, shape)), _inner(family, name, call, shape))


def _every_axis(axes: tuple[Text, ...]) -> tuple[Division, ...]:
    return tuple(Division(i, name) for i, name in enumerate(axes))


def _image(call: Call, rank: int) -> tuple[Text, ...]:
    return (_BATCH, _CHANNEL, *_SPATIAL[rank - 2])


def _kernel(call: Call, rank: int) -> tuple[Text, ...]:
    spatial = tuple(Text(f"kernel {t.en}", f"卷积核{t.zh}") for t in _SPATIAL[rank - 2])
    first, second = (_IN, _OUT) if call["transposed"] else (_OUT, _IN)
    return (first, second, *spatial)


def _sequence(call: Call, rank: int) -> tuple[Text, ...]:
    first = (_BATCH, _TIME) if call["batchFirst"] else (_TIME, _BATCH)
    return (*first, _FEATURE)


_SEQUENCES, _GATE_COLUMN = (_TIME, _BATCH, _CHANNEL), Text("gate column", "门的列")
_AXES: dict[tuple[str, str], tuple[Text, ...] | Callable[[Call, int], tuple[Text, ...]]] = {
    ("Convolution", "gradInput"): _image,
    ("Convolution", "output"): _image,
    ("Convolution", "gradWeight"): _kernel,
    ("Convolution", "gradBias"): (_CHANNEL,),
    ("ConvTbc", "gradInput"): _SEQUENCES,
    ("ConvTbc", "output"): _SEQUENCES,
    ("ConvTbc", "gradWeight"): (_TAP, _IN, _OUT),
    ("ConvTbc", "gradBias"): (_CHANNEL,),
    ("Lstm", "dxOut"): _sequence,
    ("Lstm", "output"): _sequence,
    ("Lstm", "dparamsOut"): _SPATIAL[2],  # of a bias the rows alone
    **{("Lstm", name): (_LAYER, _BATCH, _HIDDEN) for name in ("dhPrevOut", "dcPrevOut", "hy", "cy")},
    **{("Lstm", f"{name}Out"): (_TIME, _BATCH, _HIDDEN) for name in ("i", "j", "f", "o", "h", "c", "tanhC")},
    **{("ThnnFusedLstmCell", name): (_BATCH, _GATE_COLUMN) for name in ("gradGatesOut", "storageOut")},
    **{("ThnnFusedLstmCell", name): (_BATCH, _HIDDEN) for name in ("gradCxOut", "hyOut", "cyOut")},
    ("ThnnFusedLstmCell", "gradBiasOut"): (_GATE_COLUMN,),
}


def _parts(family: str, name: str, call: Call, shape: tuple[int, ...]) -> Iterator[Division]:
    """Axes that fall into groups or gates."""
    if family == "Convolution" and call["groups"] > 1:
        axis = {"gradInput": 1, "output": 1, "gradWeight": 0, "gradBias": 0}[name]
        yield Division(axis, _GROUP, shape[axis] // call["groups"])
    gated = {"dparamsOut": 0, "gradGatesOut": 1, "storageOut": 1, "gradBiasOut": 0}
    if family in ("Lstm", "ThnnFusedLstmCell") and name in gated:
        axis = gated[name]
        yield Division(axis, _GATE, shape[axis] // 4, _GATES)


def _inner(family: str, name: str, call: Call, shape: tuple[int, ...]) -> Box | None:
    """The positions of a padded convolution's gradInput at which no tap falls off the edge of gradOutput."""
    if name != "gradInput" or 0 in shape:
        return None
    if family == "ConvTbc" and call["pad"]:
        reach = _untouched(shape[0], call["self"].shape[0], call["weight"].shape[0], 1, call["pad"], 1)
        return (reach, slice(0, shape[1]), slice(0, shape[2]))
    if family != "Convolution" or call["transposed"] or not any(call["padding"]):
        return None
    axes = len(shape) - 2
    front = call["padding"][:: len(call["padding"]) // axes]
    sizes = (shape[2:], call["gradOutput"].shape[2:], call["weight"].shape[2:], call["stride"], front, call["dilation"])
    return (slice(0, shape[0]), slice(0, shape[1]), *(_untouched(*axis) for axis in zip(*sizes, strict=True)))


def _untouched(size: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int) -> slice:
    first, end = dilation * (kernel - 1) - padding, (outputs - 1) * stride - padding + 1
    first = min(max(first, 0), size)
    return slice(first, max(first, min(end, size)))


class Found(NamedTuple):
    """A place, how much of the output it is, how many of the misses are there, and how many parts of its axis it is."""

    text: Text
    part: float
    misses: int
    axis: int | None = None
    parts: int = 1


def where(found: Measured, places: Map) -> tuple[Text, ...]:
    """What the misses have in common: at most two places, the smallest first; nothing if they are everywhere."""
    candidates = [f for f in _candidates(found, places) if _gathers(found, f)]
    candidates.sort(key=lambda f: (f.part, f.parts))  # of the same channels, "group 3" says more than "channels 6 to 7"
    if not candidates:
        return ()
    first = candidates[0]
    second = [f for f in candidates if f.axis != first.axis and f.axis is not None and first.axis is not None][:1]
    return tuple(_say(found, f) for f in (first, *second))


def _gathers(found: Measured, place: Found) -> bool:
    share = place.misses / found.misses
    return share >= _MOST and place.part <= _SMALL and place.misses * math.log(place.part or 1e-300) < math.log(_LUCK)


def _candidates(found: Measured, places: Map) -> Iterator[Found]:
    for division in places.divisions:
        size = found.shape[division.axis]
        if found.width(division.axis) > 1 or size // max(division.width, 1) < 2:
            continue
        counts = found.miss_strips[division.axis].reshape(-1, division.width).sum(axis=1)
        first, last = _densest(counts, found.misses)
        inside = int(counts[first : last + 1].sum())
        parts = last - first + 1
        yield Found(_named(division, first, last, len(counts)), parts / len(counts), inside, division.axis, parts)
    if places.inner is not None and found.count:
        part = 1 - math.prod(s.stop - s.start for s in places.inner) / found.count
        text = Text("at the padded border", "在有填充的边缘")
        yield Found(text, part, found.misses - int(found.boxes[0]))


def _densest(counts: Array, misses: int) -> tuple[int, int]:
    """The shortest run of neighbouring parts that holds most of the misses, or all of them if that is hardly longer."""
    sums = np.concatenate([[0], np.cumsum(counts)])
    ends = np.searchsorted(sums, sums[:-1] + math.ceil(_MOST * misses))  # first end with enough inside
    starts = np.arange(len(counts))
    lengths = np.where(ends <= len(counts), ends - starts, len(counts) + 1)
    first = int(lengths.argmin())
    last = int(ends[first]) - 1
    touched = np.flatnonzero(counts)
    whole = int(touched[0]), int(touched[-1])
    if whole[1] - whole[0] + 1 <= _HARDLY * (last - first + 1):
        return whole
    while first < last and counts[first] == 0:
        first += 1
    return first, last


def _named(division: Division, first: int, last: int, parts: int) -> Text:
    name = division.name
    if division.labels:
        labels = division.labels[first : last + 1]
        return Text(
            f"in {name.en}{'s' if first < last else ''} {' and '.join(labels)}", f"在{'、'.join(labels)}{name.zh}"
        )
    if name.en.startswith("axis "):  # nobody knows what its positions are called
        span = f"{first}" if first == last else f"{first} to {last}"
        return Text(f"at {span} of {name.en}", f"在{name.zh}的{span.replace(' to ', '到')}")
    if first == last:
        if name is _TIME and last == parts - 1:
            return Text("in the last time step", "在最后一个时间步")
        if name is _TIME and first == 0:
            return Text("in the first time step", "在第一个时间步")
        return Text(f"in {name.en} {first}", f"在{name.zh}{first}")
    return Text(f"in {_PLURALS.get(name.en, f'{name.en}s')} {first} to {last}", f"在{name.zh}{first}到{last}")


_PLURALS = {"batch": "batches", "depth": "depths", "layer and direction": "layers and directions"}


def _say(found: Measured, place: Found) -> Text:
    if place.misses == found.misses:
        return Text(f"only {place.text.en}", f"仅{place.text.zh}")
    share = percent(place.misses, found.misses)
    return Text(f"{share} of the misses are {place.text.en}", f"{share}的超差{place.text.zh}")
