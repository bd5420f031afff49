"""Convolutions with few channels in a group, tap by tap: depthwise ones, and long rows of few channels.

There a matrix product is the wrong shape. Tensors are read and written where they lie, whatever their dtype, and the
only scratch is what each thread stages in its first cache. Sums are cut by shape alone: any number of threads gives the
same bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aclnn.base.dtype import FLOAT32, promote
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP, USE_FP16
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels.convolution.call import too_small
from aclnn.kernels.convolution.direct_geometry import ROW, Channels, Dims, Memory, Table, Window, why_not
from aclnn.kernels.native import jit
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.memory import LINE, address, aligned
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.shared import sums

PER_THREAD = 65536  # products that pay for waking a thread
MOST_SCRATCH = 64 * ROW  # elements of a slot
MOST_PAIRS = 16  # of a source and a target channel in a group: with more, matrix products are ahead

Given = Mapping[str, Array | None]
Launch = Callable[[int, Given], None]
"""(workspace, tensors by name)"""


class RefusedError(Exception):
    """Why a call is not for these kernels."""


class Problem(NamedTuple):
    """The plain convolution behind a call: its wide and its narrow tensor, and its weight."""

    window: Window
    wide: TensorSpec
    narrow: TensorSpec
    weight: TensorSpec
    groups: int
    rounds: bool
    threads: int

    def channels(self, gathers: bool) -> Channels:
        wide, narrow = self.weight.shape[1], self.weight.shape[0] // self.groups
        return Channels(self.groups, wide, narrow) if gathers else Channels(self.groups, narrow, wide)

    def table(self, gathers: bool, source: TensorSpec, target: TensorSpec, weight: TensorSpec, of_sums: bool) -> Table:
        """Of source → target; `gathers` if the target is the narrow one."""
        channels = self.channels(gathers)
        why = why_not(self.window, channels)
        if why is not None:
            raise RefusedError(why)
        of_narrow, of_wide, *taps = weight.strides
        group = of_narrow * (weight.shape[0] // self.groups)
        steps = (group, of_narrow, of_wide) if gathers else (group, of_wide, of_narrow)
        memory = Memory(_steps(source.strides), _steps(target.strides), (*steps, *_steps((0, 0, *taps))[2:]))
        table = Table(self.window, gathers, source.shape[0], channels, memory, of_sums)
        scratch = table.places()["SLOT_SIZE"]
        if scratch > MOST_SCRATCH:
            raise RefusedError(f"a block takes {scratch} elements of scratch, more than {MOST_SCRATCH}")
        return table

    @property
    def slots(self) -> int:
        products = self.narrow.size * self.weight.size // self.weight.shape[0]
        return worth(products, PER_THREAD, self.threads)


def _steps(strides: Dims) -> Dims:
    """With three axes behind pictures and channels."""
    return (*strides[:2], *(0,) * (5 - len(strides)), *strides[2:])


class Passage(NamedTuple):
    """target = Σ weight·source + bias."""

    tensors: tuple[str, str, str | None, str]  # source, weight, bias, target
    entry: Entry
    table: Any
    slots: int
    size: int  # bytes of scratch

    def launch(self) -> Launch:
        work = Work(self.entry, self.slots, 1, [0] * 5 + [ctypes.addressof(self.table)], self.slots, self.table)

        def run(workspace: int, given: Given) -> None:
            work.point(0, *(0 if name is None else _place(given[name]) for name in self.tensors), workspace)
            work.run()

        return run


class WeightSums(NamedTuple):
    """gradWeight: sums of parts, then of these."""

    tensors: tuple[str, str]  # narrow, wide
    entry: Entry
    join: Entry
    table: Any
    slots: int
    groups: int
    before: int  # bytes of scratch before the sums of parts
    size: int

    def launch(self) -> Launch:
        table = ctypes.addressof(self.table)
        work = Work(self.entry, self.slots, 1, [0, 0, 0, 0, table], self.slots, self.table)
        join = Work(self.join, self.groups, 1, [0, 0, table], 1, self.table)

        def run(workspace: int, given: Given) -> None:
            partial = workspace + self.before
            work.point(0, *(_place(given[name]) for name in self.tensors), workspace, partial)
            work.run()
            join.point(0, partial, _place(given["gradWeight"]))
            join.run()

        return run


class BiasSums(NamedTuple):
    sums: sums.Sums
    size: int = 0

    def launch(self) -> Launch:
        work = self.sums.work()

        def run(workspace: int, given: Given) -> None:
            work.point(0, _place(given["gradOutput"]))
            work.point(2, _place(given["gradBias"]))
            work.run()

        return run


def _place(array: Array | None) -> int:
    assert array is not None
    return address(array)


def _passage(problem: Problem, gathers: bool, names: tuple[str, str, str | None, str], call: Call) -> Passage:
    source, weight, target = (call[name] for name in (names[0], names[1], names[3]))
    bias = None if names[2] is None else call[names[2]]
    table = problem.table(gathers, source, target, weight, of_sums=False)
    kinds = jit.letters(source.dtype, weight.dtype, FLOAT32 if bias is None else bias.dtype, target.dtype)
    made = table.made(problem.slots, problem.rounds, None if bias is None else bias.strides[0])
    size = 4 * problem.slots * table.places()["SLOT_SIZE"]
    return Passage(names, jit.load("direct.forward", kinds + "FI"), made, problem.slots, size)


def _weight_sums(problem: Problem, names: tuple[str, str], target: TensorSpec) -> WeightSums:
    table = problem.table(True, problem.wide, problem.narrow, target, of_sums=True)
    kinds = jit.letters(problem.narrow.dtype, problem.wide.dtype)
    before = 4 * problem.slots * table.places()["SLOT_SIZE"]
    return WeightSums(
        names,
        jit.load("direct.weights", kinds + "FFI"),
        jit.load("direct.join", "F" + jit.letters(target.dtype) + "I"),
        table.made(problem.slots, problem.rounds, None),
        problem.slots,
        problem.groups,
        before,
        before + 4 * problem.groups * table.parts * table.width,
    )


def _problem(call: Call, wide: str, narrow: str, threads: int) -> Problem:
    seen = promote(call[name].dtype for name in ("gradOutput", "input", "weight") if name in call.values)
    rounding = call["cubeMathType"] if seen is FLOAT32 else KEEP
    if rounding == USE_FP16:
        raise RefusedError(f"it does not round to float16 first, as cubeMathType {USE_FP16} asks")
    sizes = (call[name].shape[2:] for name in (wide, narrow, "weight"))
    window = Window._make((*sizes, call["stride"], call["padding"], call["dilation"]))
    return Problem(window, call[wide], call[narrow], call["weight"], call["groups"], rounding != KEEP, threads)


def _check(call: Call, pictures: list[str], others: list[str]) -> None:
    """What these kernels take. Pictures are read and written row by row."""
    specs = [call[name] for name in (*pictures, *others)]
    if any(s.dtype not in jit.POINTER for s in specs):
        raise RefusedError("it takes float32, float16 and bfloat16")
    if any(s.is_empty for s in specs):
        raise RefusedError("a tensor is empty")
    pairs = call["weight"].shape[0] // call["groups"] * call["weight"].shape[1]
    if pairs > MOST_PAIRS:
        raise RefusedError(f"a group has {pairs} pairs of channels, more than {MOST_PAIRS}")
    for name in pictures:
        step = call[name].strides[-1]
        if call[name].shape[-1] > 1 and step not in (0, 1):
            raise RefusedError(f"the columns of {name} lie {step} elements apart")


def _prepared(tasks: list[Any], names: tuple[str, ...]) -> Prepared:
    def instantiate() -> Run:
        launches = [task.launch() for task in tasks]

        def run(workspace: Array | None, *tensors: Any) -> None:
            place = 0 if workspace is None else aligned(address(workspace))
            given = dict(zip(names, tensors, strict=True))
            for launch in launches:
                launch(place, given)

        return run

    size = max(task.size for task in tasks)
    return Prepared(instantiate, size + LINE if size else 0, is_launches=True)


BACKWARD = ("gradOutput", "input", "weight", "gradInput", "gradWeight", "gradBias")
FORWARD = ("input", "weight", "bias", "output")


@kernel("aclnnConvolutionBackward", "direct", engine="fast", too_small=too_small)
def convolution_backward_direct(call: Call, threads: int) -> Prepared | Refusal:
    try:
        return _prepared(_backward_tasks(call, threads), BACKWARD)
    except (RefusedError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))


def _backward_tasks(call: Call, threads: int) -> list[Any]:
    mask, transposed = call["outputMask"], call["transposed"]
    if not any(mask[:2]):
        raise RefusedError("it computes gradInput and gradWeight, of which none is wanted")
    made = [name for name, on in zip(BACKWARD[3:], mask, strict=True) if on]
    read = ["gradOutput", *(["input"] if mask[1] else [])]
    _check(call, [*read, *made[: mask[0]]], ["weight", *made[mask[0] :]])
    wide, narrow = ("gradOutput", "input") if transposed else ("input", "gradOutput")
    problem = _problem(call, wide, narrow, threads)
    tasks: list[Any] = []
    if mask[0]:
        tasks.append(_passage(problem, transposed, ("gradOutput", "weight", None, "gradInput"), call))
    if mask[1]:
        tasks.append(_weight_sums(problem, (narrow, wide), call["gradWeight"]))
    if mask[2]:
        tasks.append(BiasSums(sums.plan(call["gradOutput"], 1, call["gradBias"], threads)))
    return tasks


@kernel("aclnnConvolution", "direct", engine="fast", too_small=too_small)
def convolution_direct(call: Call, threads: int) -> Prepared | Refusal:
    transposed = call["transposed"]
    wide, narrow = ("output", "input") if transposed else ("input", "output")
    names = ("input", "weight", "bias" if call["bias"] is not None else None, "output")
    try:
        _check(call, ["input", "output"], [name for name in names[1:3] if name is not None])
        problem = _problem(call, wide, narrow, threads)
        return _prepared([_passage(problem, not transposed, names, call)], FORWARD)
    except (RefusedError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))
