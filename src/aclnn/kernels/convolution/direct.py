"""Convolutions with few channels in a group, tap by tap: depthwise ones, and long rows of few channels.

There a matmul is the wrong shape. Tensors are read and written where they lie, whatever their dtype, and the
only scratch is what each thread stages in its first cache. Sums are cut by shape alone: any number of threads gives the
same bits.
"""

from __future__ import annotations

import ctypes
import math
import operator
from typing import NamedTuple

from aclnn.base.dtype import FLOAT32, promote
from aclnn.base.rounding import KEEP, USE_FP16
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels.convolution import on_tiles
from aclnn.kernels.convolution.call import BACKWARD, AskedConvolution, sides
from aclnn.kernels.convolution.direct_geometry import ROW, Channels, Dims, DirectWindow, Memory, Table, why_not
from aclnn.kernels.native import jit, launch_sequence
from aclnn.kernels.native.launch_sequence import Aim, Step
from aclnn.kernels.native.memory import LINE
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.registry import Prepared, Refusal
from aclnn.kernels.shared import sums

PER_THREAD = 65536  # multiplications that pay for waking a thread
MOST_SCRATCH = 64 * ROW  # elements of a slot
FEW_PAIRS = 4  # of a source and a target channel in a group: with more, matmuls may be ahead
# ln(their time ÷ that of matmuls) = a·ln(made) + b·ln(read) + c·ln(taps) + d·ln(min(positions, FEW_POSITIONS))
# + e·ln(taps)·ln(positions) − level: channels of a group, of the result and of what it is made of, and the positions of
# all pictures.
FORWARDS = (0.47, 0.40, -0.23, -0.14, 0.057), 1.23
BACKWARDS = (0.53, 0.34, -0.08, -0.26, 0.033), 0.40
PAIRS_FORWARDS = (0.41, 0.30, -0.094, -0.167, 0.058), 1.13  # where matmuls are made of pairs of bfloat16
PAIRS_BACKWARDS = (0.52, 0.45, -0.11, -0.32, 0.06), 0.59
FEW_POSITIONS = 1500


class RefusedError(Exception):
    """Why a call is not for these kernels."""


class DirectProblem(NamedTuple):
    """The plain convolution behind a call: its wide and its narrow tensor, and its weight."""

    window: DirectWindow
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
        strides = (group, of_narrow, of_wide) if gathers else (group, of_wide, of_narrow)
        memory = Memory(_in_five(source.strides), _in_five(target.strides), (*strides, *_in_five((0, 0, *taps))[2:]))
        table = Table(self.window, gathers, source.shape[0], channels, memory, of_sums)
        scratch = table.places()["SLOT_SIZE"]
        if scratch > MOST_SCRATCH:
            raise RefusedError(f"a block takes {scratch} elements of scratch, more than {MOST_SCRATCH}")
        return table

    @property
    def slots(self) -> int:
        multiplications = self.narrow.size * math.prod(self.weight.shape[1:])
        return worth(multiplications, PER_THREAD, self.threads)


def _in_five(strides: Dims) -> Dims:
    """With three axes behind pictures and channels."""
    return (*strides[:2], *(0,) * (5 - len(strides)), *strides[2:])


class Task(NamedTuple):
    """One result: its launches, and the bytes of scratch that they take."""

    steps: list[Step]
    size: int = 0


def _passage(problem: DirectProblem, gathers: bool, names: tuple[str, str, str | None, str], call: Call) -> Task:
    """target = Σ weight·source + bias."""
    source, weight, target = (call[name] for name in (names[0], names[1], names[3]))
    bias = None if names[2] is None else call[names[2]]
    table = problem.table(gathers, source, target, weight, of_sums=False)
    kinds = jit.letters(source.dtype, weight.dtype, FLOAT32 if bias is None else bias.dtype, target.dtype)
    made = table.made(problem.slots, problem.rounds, None if bias is None else bias.strides[0])
    entry, slots = jit.load("direct.forward", kinds + "FI"), problem.slots
    arguments = [0] * 5 + [ctypes.addressof(made)]
    aims = [Aim(i, name) for i, name in enumerate((*names, 0)) if name is not None]
    return Task(
        [Step(lambda: Work(entry, slots, 1, arguments, slots, made), aims)], 4 * slots * table.places()["SLOT_SIZE"]
    )


def _weight_sums(problem: DirectProblem, narrow: str, wide: str, target: TensorSpec) -> Task:
    """gradWeight: sums of parts, then of these."""
    table = problem.table(True, problem.wide, problem.narrow, target, of_sums=True)
    kinds, slots, groups = jit.letters(problem.narrow.dtype, problem.wide.dtype), problem.slots, problem.groups
    entry = jit.load("direct.weights", kinds + "FFI")
    join = jit.load("direct.join", "F" + jit.letters(target.dtype) + "I")
    made = table.made(slots, problem.rounds, None)
    where, parts = ctypes.addressof(made), 4 * slots * table.places()["SLOT_SIZE"]
    steps = [
        Step(
            lambda: Work(entry, slots, 1, [0, 0, 0, 0, where], slots, made),
            (Aim(0, narrow), Aim(1, wide), Aim(2, 0), Aim(3, parts)),
        ),
        Step(lambda: Work(join, groups, 1, [0, 0, where], 1, made), (Aim(0, parts), Aim(1, "gradWeight"))),
    ]
    return Task(steps, parts + 4 * groups * table.parts * table.width)


def _problem(call: Call, threads: int) -> DirectProblem:
    wide, narrow = sides(call)
    seen = promote(call[name].dtype for name in ("gradOutput", "input", "weight") if name in call.values)
    rounding = call["cubeMathType"] if seen is FLOAT32 else KEEP
    if rounding == USE_FP16:
        raise RefusedError(f"it does not round to float16 first, as cubeMathType {USE_FP16} asks")
    sizes = (call[name].shape[2:] for name in (wide, narrow, "weight"))
    window = DirectWindow._make((*sizes, call["stride"], call["padding"], call["dilation"]))
    return DirectProblem(window, call[wide], call[narrow], call["weight"], call["groups"], rounding != KEEP, threads)


def _check(call: Call, pictures: list[str], others: list[str]) -> None:
    """What these kernels take. Pictures are read and written row by row."""
    specs = [call[name] for name in (*pictures, *others)]
    if any(s.dtype not in jit.POINTER for s in specs):
        raise RefusedError("it takes float32, float16 and bfloat16")
    if any(s.is_empty for s in specs):
        raise RefusedError("a tensor is empty")
    weight = call["weight"].shape
    made, read = weight[0] // call["groups"], weight[1]
    if call["transposed"] and "output" in call.values:
        made, read = read, made
    narrow = call[sides(call)[1]].shape
    positions = narrow[0] * math.prod(narrow[2:])
    is_gradient, in_pairs = "gradOutput" in call.values, on_tiles.multiplies_pairs(call)
    ahead = matmuls_are_ahead(made, read, math.prod(weight[2:]), positions, is_gradient, in_pairs)
    if ahead and on_tiles.too_far(call) is None:
        raise RefusedError(f"with {made * read} pairs of channels in a group matmuls are ahead")
    for name in pictures:
        step = call[name].strides[-1]
        if call[name].shape[-1] > 1 and step not in (0, 1):
            raise RefusedError(f"the columns of {name} lie {step} elements apart")


def matmuls_are_ahead(made: int, read: int, taps: int, positions: int, backwards: bool, in_pairs: bool = False) -> bool:
    """Of so many channels in a group, of the result and of what it is made of. A matmul gains with every channel, and
    of large pictures with every tap, since boxes are staged but once. Fitted to 3,600 drawn pairs of timings with AVX2
    and AVX-512 (Zen 5; 4 to 400 pairs of channels, up to 49 taps in two dimensions, up to 20 million multiplications):
    in one of 22 what is chosen takes a quarter longer than the other, in the mean 3 %. Of pairs, 1,400 of bfloat16, one
    to eight groups, judged on 700 others: one of 18, 3.5 %."""
    if made * read <= FEW_PAIRS:
        return False
    choices = (PAIRS_FORWARDS, PAIRS_BACKWARDS) if in_pairs else (FORWARDS, BACKWARDS)
    factors, level = choices[backwards]
    of_taps, of_positions = math.log(taps), math.log(max(1, positions))
    few = min(of_positions, math.log(FEW_POSITIONS))
    given = math.log(made), math.log(read), of_taps, few, of_taps * of_positions
    score: float = sum(map(operator.mul, factors, given))
    return score > level


def prepared(asked: AskedConvolution, threads: int) -> Prepared | Refusal:
    """The result, or the gradients that are wanted."""
    try:
        tasks = (_backward_tasks if asked.is_gradient else _forward_tasks)(asked.call, threads)
        size = max(task.size for task in tasks)
        steps = [step for task in tasks for step in task.steps]
        return launch_sequence.prepared(steps, asked.names, size + LINE if size else 0)
    except (RefusedError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))


def _backward_tasks(call: Call, threads: int) -> list[Task]:
    mask, transposed = call["outputMask"], call["transposed"]
    if not any(mask[:2]):
        raise RefusedError("it computes gradInput and gradWeight, of which none is wanted")
    made = [name for name, on in zip(BACKWARD[3:], mask, strict=True) if on]
    read = ["gradOutput", *(["input"] if mask[1] else [])]
    _check(call, [*read, *made[: mask[0]]], ["weight", *made[mask[0] :]])
    wide, narrow = sides(call)
    problem = _problem(call, threads)
    tasks = []
    if mask[0]:
        tasks.append(_passage(problem, transposed, ("gradOutput", "weight", None, "gradInput"), call))
    if mask[1]:
        tasks.append(_weight_sums(problem, narrow, wide, call["gradWeight"]))
    if mask[2]:
        tasks.append(Task([sums.plan(call["gradOutput"], 1, call["gradBias"], threads).step("gradOutput", "gradBias")]))
    return tasks


def _forward_tasks(call: Call, threads: int) -> list[Task]:
    names = ("input", "weight", "bias" if call["bias"] is not None else None, "output")
    _check(call, ["input", "output"], [name for name in names[1:3] if name is not None])
    return [_passage(_problem(call, threads), not call["transposed"], names, call)]
