"""Convolutions on tiles of our own: float32, float16 and bfloat16, plain or transposed, one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.convolution.call import too_small, window_of
from aclnn.kernels.convolution.tiles import FOUND, DataPlan, Shape
from aclnn.kernels.convolution.tiles_weight import WeightPlan
from aclnn.kernels.native import jit
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.tape import Finding
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.registry import Prepared, Run
from aclnn.kernels.shared import sums
from aclnn.kernels.shared.arena import Arena
from aclnn.kernels.shared.launch import Launch, Numbers, Room
from aclnn.kernels.shared.ports import Port, Traffic, input_port

MOST_PASSES = 1024  # each is a launch of its own
MOST_TERMS = 400_000  # of a sum over channels and taps: its blocks are added one after the other
MOST_POSITIONS = 100_000_000  # of a sum over positions
FARTHEST = 512  # positions between neighbouring taps: a box is copied with all that lies between


def not_worth_it(call: Call) -> str | None:
    """Why another kernel should rather serve, if it should."""
    apart = max(call["dilation"])
    far = f"taps are {apart} positions apart, more than {FARTHEST}" if apart > FARTHEST else None
    return too_small(call) or far


def too_far(call: Call) -> str | None:
    """Why a call is beyond what boxes and sums are made for, if it is."""
    weight = call["weight"].shape
    needed = math.prod(map(min, call["stride"], weight[2:]))
    if needed > MOST_PASSES:
        return f"its strides take {needed} passes, more than {MOST_PASSES}"
    terms = max(weight[:2]) * math.prod(weight[2:])
    if terms > MOST_TERMS:
        return f"sums of {terms} terms are longer than {MOST_TERMS}"
    pictures = [call.values[name] for name in ("input", "output", "gradOutput") if name in call.values]
    positions = max(picture.size // max(1, picture.shape[1]) for picture in pictures)
    return f"{positions} positions are more than {MOST_POSITIONS}" if positions > MOST_POSITIONS else None


class Plan:
    """The launches of a convolution, and how its tensors get in.

    Padding is multiplied as zeros, and 0·NaN is NaN: where a pass pads, the weight must be finite, and so must the sums
    of gradWeight, else another kernel serves the run.
    """

    def __init__(self, call: Call, threads: int, rounding: int):
        self._call, self._threads, self._rounding = call, threads, rounding
        self.arena, self.numbers = Arena(), Numbers()
        self._room = Room(self.arena, self.numbers, threads)
        self.ports: dict[str, Port] = {}
        self.offsets: dict[str, int | None] = {}
        self.packing: list[Launch] = []
        self.launches: list[Launch] = []
        self.watched: list[tuple[int, int]] = []

    def bring(self, name: str) -> TensorSpec:
        """The tensor as launches meet it: where it lies, or a rounded copy of it."""
        spec: TensorSpec = self._call[name]
        if name not in self.ports:
            self.ports[name] = Port(spec, spec.strides, ())
            if self._rounding != KEEP:
                self._copy(name, self._rounding)
        return dense(FLOAT32, spec.shape) if self.ports[name].copies else spec

    def bring_dense(self, name: str) -> None:
        """The tensor is met as dense float32."""
        spec: TensorSpec = self._call[name]
        self.ports[name] = Port(spec, spec.strides, ())
        if spec.dtype is not FLOAT32 or not spec.is_contiguous:
            self._copy(name, KEEP)

    def _copy(self, name: str, rounding: int) -> None:
        spec: TensorSpec = self._call[name]
        self.ports[name] = input_port(spec, FLOAT32, rounding, self._threads, in_order=True)
        self.offsets[name] = self.arena.reserve(4 * spec.size)

    def take(self, name: str) -> TensorSpec:
        spec: TensorSpec = self._call[name]
        self.ports[name] = Port(spec, spec.strides, ())
        return spec

    def add_data(self, shape: Shape, onto_wide: bool, names: tuple[str, str, str, str | None]) -> None:
        plan = DataPlan(shape, onto_wide, names, self._room)
        self.packing += plan.packing
        self.launches += plan.launches
        if plan.pads:
            self.watched += plan.packed

    def add_weight(self, shape: Shape, names: tuple[str, str, str]) -> None:
        self.launches += WeightPlan(shape, names, self._room).launches

    def load(self) -> None:
        """Compiles what is launched. Raises NoNativeCodeError."""
        for launch in (*self.packing, *self.launches):
            jit.load(launch.name, launch.kinds)
        if self.watched:
            jit.load("convert.find_not_finite", "FI")


class Execution:
    """What one executor launches."""

    def __init__(self, plan: Plan, inputs: Sequence[str], threads: int):
        self._traffic = Traffic(plan.ports, plan.offsets)
        self._copied = [name for name in inputs if name in plan.ports and plan.ports[name].copies]
        self._found = Finding()
        self._packing, self._launches = (
            [(launch, launch.work(plan.numbers)) for launch in launches] for launches in (plan.packing, plan.launches)
        )
        self._guards = [(place, self._guard(size, threads)) for place, size in plan.watched]

    def _guard(self, size: int, threads: int) -> Work:
        entry = jit.load("convert.find_not_finite", "FI")
        return Work(entry, size, 1024, [0, self._found.address], worth(size, sums.PER_THREAD, threads))

    def run(self, workspace: Array | None, given: Mapping[str, Array | None]) -> bool:
        """Computes the outputs among the given tensors; False if another kernel must, and they are worth nothing."""
        base = 0 if workspace is None else aligned(address(workspace))
        places = self._traffic.places(given, base)
        for name in self._copied:
            self._traffic.bring(name, given[name], places)
        self._found.clear()
        places[FOUND] = self._found.address
        self._run(self._packing, places, base)
        for place, work in self._guards:
            work.point(0, base + place)
            work.run()
        if not self._found:
            self._run(self._launches, places, base)
        return not self._found

    def _run(self, launches: Sequence[tuple[Launch, Work]], places: Mapping[str, int], base: int) -> None:
        for launch, work in launches:
            launch.aim(work, places, base)
            work.run()


BACKWARD = ("gradOutput", "input", "weight", "gradInput", "gradWeight")
FORWARD = ("input", "weight", "bias", "output")


def prepared_backward(call: Call, threads: int, rounding: int, exact: Callable[[Call], Run]) -> Prepared:
    """The gradients that are wanted. Raises NoNativeCodeError."""
    plan = Plan(call, threads, rounding)
    of_input, of_weight, of_bias = call["outputMask"]
    g = plan.bring("gradOutput")  # copies come first: they lie in the workspace for the whole run
    w = plan.bring("weight") if of_input else None
    x = plan.bring("input") if of_weight else None
    if w is not None:
        shape = _shape(call, g, plan.take("gradInput"), w)
        plan.add_data(shape, not call["transposed"], ("gradOutput", "weight", "gradInput", None))
    if x is not None:
        names = ("gradOutput", "input") if call["transposed"] else ("input", "gradOutput")
        plan.add_weight(_shape(call, g, x, plan.take("gradWeight")), (*names, "gradWeight"))
    plan.load()
    bias = sums.plan(call["gradOutput"], 1, call["gradBias"], threads) if of_bias else None

    def instantiate() -> Run:
        execution, fallback = Execution(plan, BACKWARD[:3], threads), exact(call)
        add = bias.adder() if bias else None

        def run(workspace: Array | None, *tensors: Any) -> None:
            if not execution.run(workspace, dict(zip(BACKWARD, tensors, strict=False))):
                fallback(None, *tensors)
            elif add is not None:
                add(tensors[0], tensors[-1])

        return run

    return Prepared(instantiate, plan.arena.size, is_launches=True)


def _shape(call: Call, output: TensorSpec, input: TensorSpec, weight: TensorSpec) -> Shape:
    """The convolution that a call is the gradient of, with the tensors as launches meet them."""
    wide, narrow = (output, input) if call["transposed"] else (input, output)
    return Shape(wide, narrow, weight, window_of(call), call["groups"])


def prepared_forward(call: Call, gradient: Call, threads: int, rounding: int, exact: Callable[[Call], Run]) -> Prepared:
    """The convolution itself; `gradient` is the call for gradInput that computes the same. Raises NoNativeCodeError."""
    plan = Plan(call, threads, rounding)
    bias = None if call["bias"] is None else "bias"
    x, w, y = plan.bring("input"), plan.bring("weight"), plan.take("output")
    if bias is not None:
        plan.bring_dense("bias")
    plan.add_data(_shape(gradient, x, y, w), not gradient["transposed"], ("input", "weight", "output", bias))
    plan.load()

    def instantiate() -> Run:
        execution, fallback = Execution(plan, FORWARD[:3], threads), exact(call)

        def run(workspace: Array | None, *tensors: Any) -> None:
            if not execution.run(workspace, dict(zip(FORWARD, tensors, strict=True))):
                fallback(None, *tensors)

        return run

    return Prepared(instantiate, plan.arena.size, is_launches=True)
