"""Convolutions on tiles of our own: float32, float16 and bfloat16, plain or transposed, one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from aclnn.base.dtype import BFLOAT16, FLOAT32
from aclnn.base.rounding import KEEP
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.convolution import bfloat16_rule
from aclnn.kernels.convolution.call import AskedConvolution, rounding_of, sides, window_of
from aclnn.kernels.convolution.shape import Shape
from aclnn.kernels.convolution.tiles import DataPlan
from aclnn.kernels.convolution.tiles_weight import WeightPlan
from aclnn.kernels.native import jit, launch_sequence
from aclnn.kernels.native.launch_sequence import Aim, Step
from aclnn.kernels.registry import Prepared, Run
from aclnn.kernels.shared import sums
from aclnn.kernels.shared.launch import Launch, Numbers, Room
from aclnn.kernels.shared.ports import input_port
from aclnn.kernels.shared.workspace import Arena

MOST_PASSES = 1024  # each is a launch of its own
MOST_TERMS = 400_000  # of a sum over channels and taps: its blocks are added one after the other
MOST_POSITIONS = 100_000_000  # of a sum over positions
FARTHEST = 512  # positions between neighbouring taps: a box is copied with all that lies between


def not_worth_it(call: Call) -> str | None:
    """Why another kernel should rather serve, if it should."""
    apart = max(call["dilation"])
    return f"taps are {apart} positions apart, more than {FARTHEST}" if apart > FARTHEST else None


def too_far(call: Call) -> str | None:
    """Why a call is beyond what boxes and sums are made for, if it is."""
    weight = call["weight"].shape
    needed = math.prod(map(min, call["stride"], weight[2:]))
    if needed > MOST_PASSES:
        return f"its strides take {needed} passes, more than {MOST_PASSES}"
    terms = max(weight[0] // call["groups"], weight[1]) * math.prod(weight[2:])
    if terms > MOST_TERMS:
        return f"sums of {terms} terms are longer than {MOST_TERMS}"
    pictures = [call.values[name] for name in ("input", "output", "gradOutput") if name in call.values]
    positions = max(picture.size // max(1, picture.shape[1]) for picture in pictures)
    return f"{positions} positions are more than {MOST_POSITIONS}" if positions > MOST_POSITIONS else None


def prepared(asked: AskedConvolution, threads: int) -> Prepared:
    """The result, or the gradients that are wanted; of bfloat16 in pairs, and of floats what these are too small for:
    both are planned, and compiled, before any of it runs. Raises NoNativeCodeError."""
    of_floats = _planned(asked, threads, False, asked.exact, 0)
    if not multiplies_pairs(asked.call):
        return of_floats
    return _planned(asked, threads, True, of_floats.instantiate, of_floats.workspace_size)


def multiplies_pairs(call: Call) -> bool:
    """Whether products are made in pairs, see source/pairs.py. Raises NoNativeCodeError."""
    return jit.vectors().pairs and bfloat16_rule.dtype_of(call) is BFLOAT16


def _planned(
    asked: AskedConvolution, threads: int, in_pairs: bool, otherwise: Callable[[], Run], size: int
) -> Prepared:
    plan = TilesPlan(asked.call, threads, in_pairs)
    if asked.is_gradient:
        plan.add_gradients()
    else:
        plan.add_result()
    return launch_sequence.prepared(plan.steps(), asked.names, max(plan.arena.size, size), otherwise)


class TilesPlan:
    """The launches of a convolution, and how its tensors get in.

    Padding is multiplied as zeros, and 0·NaN is NaN: where a pass pads, the weight must be finite, and so must the sums
    of gradWeight, else another kernel serves the run. Where bfloat16 is multiplied in pairs, that is one of floats,
    which also has what is too small for these.
    """

    def __init__(self, call: Call, threads: int, in_pairs: bool):
        self._call, self._threads, self._rounding, self._in_pairs = call, threads, rounding_of(call), in_pairs
        self._window, (self._wide, self._narrow) = window_of(call), sides(call)
        self.arena, self._numbers = Arena(), Numbers()
        self._room = Room(self.arena, self._numbers, threads)
        self._copies: dict[str, int] = {}  # where a tensor that is copied lies
        self._entering: list[Step] = []
        self._packing: list[Launch] = []
        self._launches: list[Launch] = []
        self._leaving: list[Step] = []

    def steps(self) -> list[Step]:
        """All of it in order; what is launched is compiled by now. Raises NoNativeCodeError."""
        packing, launches = map(self._step, self._packing), map(self._step, self._launches)
        return [*self._entering, *packing, *launches, *self._leaving]

    def _step(self, launch: Launch) -> Step:
        launch.load()
        starts = launch.starts or (0,) * len(launch.operands)
        operands = enumerate(zip(launch.operands, starts, strict=True))
        aims = [Aim(i, self._met(name), start) for i, (name, start) in operands if name is not None]
        return Step(partial(launch.work, self._numbers), aims)

    def _met(self, operand: str | int) -> str | int:
        return self._copies.get(operand, operand) if isinstance(operand, str) else operand

    def add_gradients(self) -> None:
        call = self._call
        of_input, of_weight, of_bias = call["outputMask"]
        met = {"gradOutput": self._bring("gradOutput")}  # copies come first: they are there for the whole run
        weight = self._bring("weight") if of_input else None
        picture = self._bring("input") if of_weight else None
        if weight is not None:
            names = ("gradOutput", "weight", "gradInput", None)
            self._add_data({**met, "input": call["gradInput"]}, weight, self._wide == "input", names)
        if picture is not None:
            shape = self._shape({**met, "input": picture}, call["gradWeight"])
            self._launches += WeightPlan(shape, (self._wide, self._narrow, "gradWeight"), self._room).launches
        if of_bias:
            plan = sums.plan(call["gradOutput"], 1, call["gradBias"], self._threads)
            self._leaving.append(plan.step("gradOutput", "gradBias"))

    def add_result(self) -> None:
        call, bias = self._call, self._call["bias"]
        met = {"input": self._bring("input"), "output": call["output"]}
        weight = self._bring("weight")
        if bias is not None and (bias.dtype is not FLOAT32 or not bias.is_contiguous):
            self._copy("bias", KEEP)
        names = ("input", "weight", "output", None if bias is None else "bias")
        self._add_data(met, weight, self._wide == "output", names)

    def _bring(self, name: str) -> TensorSpec:
        """A tensor as launches meet it: where it lies, or a rounded copy of it."""
        spec: TensorSpec = self._call[name]
        if self._rounding == KEEP:
            return spec
        self._copy(name, self._rounding)
        return dense(FLOAT32, spec.shape)

    def _copy(self, name: str, rounding: int) -> None:
        """Brings a tensor as dense float32; a second copy, a rounding, works in place."""
        spec: TensorSpec = self._call[name]
        place, source = self.arena.reserve(4 * spec.size), name
        for copy in input_port(spec, FLOAT32, rounding, self._threads, in_order=True).copies:
            self._entering.append(Step(copy.work, (Aim(0, self._met(source)), Aim(1, place))))
            self._copies[name] = place

    def _add_data(
        self,
        met: Mapping[str, TensorSpec],
        weight: TensorSpec,
        onto_wide: bool,
        names: tuple[str, str, str, str | None],
    ) -> None:
        plan = DataPlan(self._shape(met, weight), onto_wide, names, self._room)
        self._packing += plan.packing
        self._launches += plan.launches

    def _shape(self, met: Mapping[str, TensorSpec], weight: TensorSpec) -> Shape:
        groups = self._call["groups"]
        shape = Shape(met[self._wide], met[self._narrow], weight, self._window, groups, self._in_pairs)
        return shape.in_one_row() if self._in_pairs else shape
