"""Where the taps of a convolution meet, as the table of source/direct_table.py: all that planning does is arithmetic.

Of the plain convolution, whose narrow position u meets the wide position u·stride − padding + tap·dilation, the base is
u where narrow positions are made (gathering). Where wide ones are made (scattering), position i of the padded picture
has the base i div stride: taps of one residue mod stride make the positions of that residue.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from aclnn.base.taps import padding_ends
from aclnn.kernels.shared.workspace import in_lines
from aclnn.kernels.source import direct_table as names
from aclnn.kernels.source.direct_table import PHASE_FIELDS, SLACK

Dims = tuple[int, ...]
PICTURES = 512  # elements of pictures that are worth a block: the next picture is fetched while one is computed
ROW = 4096  # elements of a plane of the stage, about: with a second one they fill half of the smallest first cache
MOST_TAPS = 4096  # of one target: 128 chains of taps, added one by one, are within the bound
MOST_RESIDUES = 64


class Tap(NamedTuple):
    """One tap on one axis: the residue of the source's and of the target's positions, how far it reaches in the stage,
    and the base positions that meet something."""

    source: int
    target: int
    reach: int
    first: int
    end: int


class DirectAxis(NamedTuple):
    """One axis: positions of the base, sizes and steps of source and target, taps. See source/direct_table.py."""

    base: int
    size: int
    step: int
    origin: int
    out_size: int
    out_step: int
    out_origin: int
    taps: tuple[Tap, ...]

    @property
    def reach(self) -> int:
        return max(tap.reach for tap in self.taps)

    @property
    def distance(self) -> int:
        """From one row to the next where a row is whole: zeros behind one may be those before the next."""
        extent, least = self.base + self.reach, self.base
        for residue in {tap.source for tap in self.taps}:
            first, end = _met(extent, self.step, self.origin + residue, self.size)
            least = max(least, end, extent - first)
        return least


def gathering(wide: int, narrow: int, kernel: int, stride: int, padding: int, dilation: int) -> DirectAxis:
    taps = []
    for q in range(kernel):
        reach, residue = divmod(q * dilation, stride)
        taps.append(Tap(residue, 0, reach, *_met(narrow, stride, q * dilation - padding, wide)))
    return DirectAxis(narrow, wide, stride, -padding, narrow, 1, 0, tuple(taps))


def scattering(wide: int, narrow: int, kernel: int, stride: int, padding: int, dilation: int) -> DirectAxis:
    furthest, begin = (kernel - 1) * dilation // stride, padding // stride
    base = (wide - 1 + padding) // stride + 1 - begin
    taps = []
    for q in range(kernel):
        back, residue = divmod(q * dilation, stride)
        taps.append(Tap(0, residue, furthest - back, *_met(base, 1, begin - back, narrow)))
    return DirectAxis(base, narrow, 1, begin - furthest, wide, stride, begin * stride - padding, tuple(taps))


def _met(count: int, step: int, shift: int, size: int) -> tuple[int, int]:
    """The range of b < count for which b·step + shift is a position below size."""
    first = min(max(0, -(shift // step)), count)
    return first, min(max(first, (size - 1 - shift) // step + 1), count)


class DirectWindow(NamedTuple):
    """The plain convolution behind a call."""

    wide: Dims
    narrow: Dims
    kernel: Dims
    stride: Dims
    padding: Dims  # two entries for every axis, or one
    dilation: Dims

    def axes(self, gathers: bool) -> list[DirectAxis]:
        """Depth, height and width; those that are not there have one position and one tap."""
        fronts = (front for front, _ in padding_ends(self.padding, len(self.kernel)))
        make = gathering if gathers else scattering
        known = zip(self.wide, self.narrow, self.kernel, self.stride, fronts, self.dilation, strict=True)
        made = [make(*one) for one in known]
        return [make(1, 1, 1, 1, 0, 1)] * (3 - len(made)) + made


class Memory(NamedTuple):
    """How source, target and weight lie in memory, in elements: pictures, channels, then depth, height, width."""

    source: Dims
    target: Dims
    weight: Dims  # groups, targets, sources, depth, height, width


class Channels(NamedTuple):
    groups: int
    sources: int  # of a group
    targets: int


class Table:
    """The table, and how much scratch a slot needs."""

    def __init__(
        self, window: DirectWindow, gathers: bool, pictures: int, channels: Channels, memory: Memory, for_weights: bool
    ):
        spatial = window.axes(gathers)
        self.axes = [DirectAxis(pictures, pictures, 1, 0, pictures, 1, 0, (Tap(0, 0, 0, 0, pictures),)), *spatial]
        self.channels, self.memory, self.for_weights = channels, memory, for_weights
        self.planes = sorted(itertools.product(*({t.source for t in a.taps} for a in spatial)))
        self.phases = list(itertools.product(*(range(a.out_step) for a in spatial)))
        self.taps = channels.sources * math.prod(len(a.taps) for a in spatial)
        self.blocks, self.pitches, self.plane = _blocked(self.axes, channels.sources * len(self.planes))
        self.block_count = math.prod(-(-a.base // b) for a, b in zip(self.axes, self.blocks, strict=True))
        self.parts = min(self.block_count, -(-32 // channels.groups)) if for_weights else 1

    @property
    def width(self) -> int:
        """Sums of a group."""
        return self.channels.targets * self.taps

    def places(self) -> dict[str, int]:
        """Where the parts of a slot begin, and its size."""
        whole = self.width if self.for_weights else self.taps
        runs = -(-self.block_count // self.parts)
        sizes = {
            "STAGE": self.channels.sources * len(self.planes) * self.plane,
            "OUT": (self.channels.targets if self.for_weights else 1) * self.plane,
            "PACKED": self.taps,
            "RUN": max(whole, self.plane),
            "COUNTER": whole * (runs.bit_length() + 1) if self.for_weights else 0,
        }
        ends = [0, *itertools.accumulate(map(in_lines, sizes.values()))]
        return dict(zip([*sizes, "SLOT_SIZE"], ends, strict=True))

    def made(self, slots: int, rounds: bool, bias_stride: int | None) -> ctypes.Array[ctypes.c_int64]:
        header = {
            **self._channels(),
            **self.places(),
            "HAS_BIAS": int(bias_stride is not None),
            "BIAS_STRIDE": bias_stride or 0,
            "ROUNDS": int(rounds),
            "PARTS": self.parts,
            "SLOTS": slots,
            "PLANE": self.plane,
            "PLANES": len(self.planes),
            "PHASES": len(self.phases),
            "TAPS": self.taps,
        }
        values = [number for i in range(4) for number in self._axis(i)] + [0] * (names.HEADER - 4 * names.FIELDS)
        for name, rows in self._lists().items():
            header[name] = len(values)
            values += rows
        for name, value in header.items():
            values[getattr(names, name)] = value
        return (ctypes.c_int64 * len(values))(*values)

    def _channels(self) -> dict[str, int]:
        memory = self.memory
        return {
            "GROUPS": self.channels.groups,
            "SOURCES": self.channels.sources,
            "TARGETS": self.channels.targets,
            "SOURCE_STRIDE": memory.source[1],
            "TARGET_STRIDE": memory.target[1],
            "WEIGHT_GROUP": memory.weight[0],
            "WEIGHT_TARGET": memory.weight[1],
        }

    def _axis(self, i: int) -> tuple[int, ...]:
        a, block = self.axes[i], self.blocks[i]
        where = i if i == 0 else i + 1  # behind the pictures come the channels
        return (
            a.base,
            block,
            -(-a.base // block),
            block + a.reach,
            self.pitches[i],
            a.size,
            a.step,
            a.origin,
            self.memory.source[where],
            a.out_size,
            a.out_step,
            a.out_origin,
            self.memory.target[where],
        )

    def _lists(self) -> dict[str, list[int]]:
        """Residues, and the taps of all sources, ordered by the residue of the target that they make."""
        spatial, strides = self.axes[1:], self.memory.weight
        offsets: list[int] = []
        weights, limits, phases = [], [], []
        for phase in self.phases:
            first = len(offsets)
            choices = [[q for q, t in enumerate(a.taps) if t.target == r] for a, r in zip(spatial, phase, strict=True)]
            for c, *tap in itertools.product(range(self.channels.sources), *choices):
                met = [a.taps[q] for a, q in zip(spatial, tap, strict=True)]
                plane = c * len(self.planes) + self.planes.index(tuple(t.source for t in met))
                reach = sum(t.reach * p for t, p in zip(met, self.pitches[1:], strict=True))
                offsets.append(plane * self.plane + reach)
                weights.append(c * strides[2] + sum(q * s for q, s in zip(tap, strides[3:], strict=True)))
                limits += [edge for t in met for edge in (t.first, t.end)]
            phases += [*phase, first, len(offsets) - first]
        assert len(phases) == PHASE_FIELDS * len(self.phases)
        planes = [residue for plane in self.planes for residue in plane]
        return {
            "AT_PLANES": planes,
            "AT_PHASES": phases,
            "AT_OFFSETS": offsets,
            "AT_WEIGHTS": weights,
            "AT_LIMITS": limits,
        }


def _blocked(axes: Sequence[DirectAxis], planes: int) -> tuple[list[int], list[int], int]:
    """Positions of a block on every axis, the pitches of its planes, and the elements of a plane.

    Rows as long as they are, as many as fit; an axis is cut where the ones inside it are whole.
    """
    blocks, pitches, pitch, is_whole, last = [], [], 1, True, 0
    for i, a in reversed(list(enumerate(axes))):
        room = max(ROW // planes, ROW // 8) if i else PICTURES
        block = min(a.base, max(1, room // pitch - a.reach)) if is_whole else 1
        block = -(-a.base // -(-a.base // block))  # blocks of one size
        is_whole = is_whole and block == a.base
        blocks.append(block)
        pitches.append(pitch)
        last += (block + a.reach - 1) * pitch
        pitch *= a.distance if is_whole else block + a.reach
    return blocks[::-1], pitches[::-1], in_lines(max(last + 1, pitch)) + SLACK


def why_not(window: DirectWindow, channels: Channels) -> str | None:
    """Why no table is made, if none is: the number of its entries must be small."""
    taps, residues = channels.sources * math.prod(window.kernel), math.prod(window.stride)
    if taps > MOST_TAPS:
        return f"{taps} taps of a channel are more than {MOST_TAPS}"
    return (
        f"strides make {residues} residues of positions, more than {MOST_RESIDUES}"
        if residues > MOST_RESIDUES
        else None
    )
