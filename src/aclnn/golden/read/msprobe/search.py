"""The stride, padding and dilation of a convolution whose dump does not say them: those that its forward shows.

Sizes leave few candidates; each is tried on the first picture, and one is taken only if no other explains as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from aclnn import ops
from aclnn.base.geometry import Array
from aclnn.golden.read.msprobe.arguments import data, first, rounded, tensor
from aclnn.golden.read.msprobe.calls import RecordedCall, Unjudged
from aclnn.golden.read.msprobe.dump import Recorded
from aclnn.runtime.reference import evaluate, evaluate_sums

_NAMES = ("stride", "padding", "dilation", "output_padding")
_LARGEST = 8  # stride and dilation that are thought of
_MOST = 300  # candidates that are tried
_CHANNELS = 8  # output channels that are tried
_CLOSE = 2.0**-7  # of Σ|terms|: HF32 and bfloat16 reproduce so, another stride does not
_ENOUGH = 0.9  # of the elements must agree


class SpatialAxis(NamedTuple):
    """One axis of a convolution."""

    stride: int
    padding: int
    dilation: int
    output_padding: int = 0


def attributes_of(call: RecordedCall, given: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody said of the module, or what its forward shows."""
    x, weight = tensor(given["input"], "input"), tensor(given["weight"], "weight")
    y = first(call.results(), "output")
    axes, transposed = len(weight.shape) - 2, call.kind.startswith("ConvTranspose")
    if len(x.shape) not in (axes + 1, axes + 2) or len(x.shape) != len(y.shape):
        raise Unjudged("its tensors are not those of a convolution", "其张量与卷积不符")
    groups = (y.shape[-axes - 1] if transposed else x.shape[-axes - 1]) // max(weight.shape[1], 1)
    if said.keys() & set(_NAMES):
        plain = {"stride": 1, "padding": 0, "dilation": 1, "groups": groups} | (
            {"output_padding": 0} if transposed else {}
        )
        return {**plain, **{n: _listed(v) for n, v in said.items() if n in plain}}
    trial = _Trial(call, given, (x, weight, y), transposed, groups)
    found = _shown(trial, zip(x.shape[-axes:], weight.shape[2:], y.shape[-axes:], strict=True))
    columns = dict(zip(_NAMES, map(list, zip(*found, strict=True)), strict=True))
    return {**{n: v for n, v in columns.items() if transposed or n != "output_padding"}, "groups": groups}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else value


def _shown(trial: _Trial, sizes: Iterable[tuple[int, int, int]]) -> tuple[SpatialAxis, ...]:
    """The axes that alone reproduce a forward; of each the sizes of input, kernel and output are known."""
    per_axis = [list(_candidates(*one, trial.transposed)) for one in sizes]
    shares = {axis: trial.share(axis) for axis in islice(_combined(per_axis), _MOST)}
    best = max(shares.values(), default=0.0)
    winners = [axis for axis, share in shares.items() if share == best]
    if best < _ENOUGH or len(winners) != 1:
        several = best >= _ENOUGH
        en = "several reproduce its forward" if several else "none that was tried reproduces its forward"
        zh = "且有多组都能重现其正向" if several else "且尝试过的都不能重现其正向"
        raise Unjudged(
            f"its stride, padding and dilation are not in the dump, and {en}; dump with level mix, or say them in an "
            "attributes file",
            f"dump中没有它的stride、padding和dilation，{zh}；请以level mix采集，或用属性文件给出",
        )
    return winners[0]


def _combined(per_axis: list[list[SpatialAxis]]) -> Iterator[tuple[SpatialAxis, ...]]:
    """The same for all axes first, then every other combination."""
    same = [a for a in per_axis[0] if all(a in others for others in per_axis)]
    yield from ((a,) * len(per_axis) for a in same)
    yield from (combined for combined in product(*per_axis) if len(set(combined)) > 1)


def _candidates(size: int, taps: int, result: int, transposed: bool) -> Iterator[SpatialAxis]:
    for dilation in range(1, _LARGEST + 1 if taps > 1 else 2):
        reach = dilation * (taps - 1)
        for padding in range(reach + 1):
            if transposed:
                yield from _transposed(size, reach, result, padding, dilation)
            else:
                yield from _plain(size, reach, result, padding, dilation)


def _plain(size: int, reach: int, result: int, padding: int, dilation: int) -> Iterator[SpatialAxis]:
    room = size + 2 * padding - reach - 1
    fitting = [s for s in range(1, _LARGEST + 1) if room >= 0 and room // s + 1 == result]
    yield from (SpatialAxis(s, padding, dilation) for s in (fitting[:1] if result == 1 else fitting))


def _transposed(size: int, reach: int, result: int, padding: int, dilation: int) -> Iterator[SpatialAxis]:
    for stride in range(1, _LARGEST + 1 if size > 1 else 2):
        more = result - ((size - 1) * stride - 2 * padding + reach + 1)
        if 0 <= more < max(stride, dilation):
            yield SpatialAxis(stride, padding, dilation, more)


Tensors = tuple[Recorded, Recorded, Recorded]  # input, weight, output


class _Trial:
    """The first picture of a call, and a few of its output channels."""

    def __init__(self, call: RecordedCall, given: Mapping[str, Any], tensors: Tensors, transposed: bool, groups: int):
        x, weight, y = (data(call, t, n) for t, n in zip(tensors, ("input", "weight", "output"), strict=True))
        batched = x.ndim == weight.ndim
        self.x, self.y = x[:1] if batched else x[None], y[:1] if batched else y[None]
        if y.dtype != x.dtype:
            self.x, weight = (rounded(a, tensors[2].dtype) for a in (self.x, weight))
        bias = given.get("bias")
        self.bias = data(call, bias, "bias") if isinstance(bias, Recorded) else None
        self.weight, self.transposed, self.groups = weight, transposed, groups
        if groups == 1:
            few: Any = (slice(None), slice(_CHANNELS)) if transposed else slice(_CHANNELS)
            self.weight, self.y = weight[few], self.y[:, :_CHANNELS]
            self.bias = None if self.bias is None else self.bias[:_CHANNELS]

    def share(self, axes: tuple[SpatialAxis, ...]) -> float:
        """How much of the forward's output these attributes reproduce."""
        stride, padding, dilation, output_padding = map(tuple, zip(*axes, strict=True))
        given: dict[str, Any] = {"input": self.x, "weight": self.weight, "bias": self.bias}
        given |= {"stride": stride, "padding": padding}
        given |= {"dilation": dilation, "transposed": self.transposed, "output_padding": output_padding}
        given |= {"groups": self.groups, "cube_math_type": 0}
        op = ops.find("aclnnConvolution")
        (exact,), (terms,) = evaluate(op, given), evaluate_sums(op, given)
        if exact.shape != self.y.shape:
            return 0.0
        with np.errstate(all="ignore"):
            close: Array = np.abs(self.y.astype(np.float64) - exact) <= _CLOSE * np.broadcast_to(
                terms.total, exact.shape
            )
        return float(close.mean()) if close.size else 0.0
