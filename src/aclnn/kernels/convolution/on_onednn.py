"""Convolutions of bfloat16 on oneDNN, where the processor has AMX, which tiles of ours do not use.

Everywhere else, and for every other dtype, kernels of our own are ahead of PyTorch; see docs/en/decisions.md.

Plain      gradInput = backward data of gradOutput; gradWeight = backward weights of input and gradOutput.
Transposed it is the gradient of a plain convolution from gradOutput to input, so the roles are exchanged:
           gradInput = forward of gradOutput; gradWeight = backward weights of gradOutput and input.
A forward convolution is the gradInput of a transposed one, with a bias; and a transposed one that of a plain one.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aclnn.base.dtype import BFLOAT16, FLOAT32, DType
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP
from aclnn.base.taps import Window, tap_ranges
from aclnn.base.tensor import TensorSpec
from aclnn.contract.call import Call
from aclnn.kernels.convolution.bfloat16_rule import dtype_of
from aclnn.kernels.convolution.call import OUTPUTS, AskedConvolution, as_gradient, sides, wanted, window_of
from aclnn.kernels.native import jit
from aclnn.kernels.native.launch_sequence import SequenceRun
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.native.threads import Work, worth
from aclnn.kernels.onednn import library as onednn
from aclnn.kernels.onednn.library import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    SRC,
    WEIGHTS,
    Convolution,
    Primitive,
)
from aclnn.kernels.onednn.program import Buffer, Program, Recent, Session
from aclnn.kernels.registry import Prepared, Refusal, Run
from aclnn.kernels.shared import sums
from aclnn.kernels.shared.ports import Port, Traffic, input_port, output_port

LOOK = ("convert.find_not_finite_bfloat16", "BI")
LOOKS_PER_THREAD = 1 << 17  # elements to look at that pay for waking a thread
Dims = tuple[int, ...]
ROLES = {"input": "gradOutput", "output": "gradInput"}  # of the tensors of a convolution forwards
Given = Mapping[str, Array | None]


def refused(call: Call) -> str | None:
    """Why oneDNN does not compute a call, if it does not."""
    if dtype_of(call) is not BFLOAT16:
        return "it takes bfloat16"
    if "bias" in call.values and call["bias"] is not None and call["transposed"]:
        return "it adds no bias to a transposed convolution"
    try:
        library = onednn.library()
    except onednn.OneDnnError as reason:
        return str(reason)
    if not library.has_amx:
        return "the processor has no AMX, without which oneDNN is slower"
    if "outputMask" in call.values and call["outputMask"][1] and _has_idle_taps(call):
        return "it writes no gradient of some taps that meet nothing but padding"
    if _passes_planes_over(call):
        return "it writes nothing to planes that no tap meets"
    return None


def _along(call: Call) -> Sequence[Sequence[tuple[slice, slice]]]:
    """By axis, for every tap: the positions of the narrow side that take part and those of the wide side they meet."""
    wide, narrow = (call[name].shape[2:] for name in sides(call))
    window, kernel = window_of(call), call["weight"].shape[2:]
    return tap_ranges(narrow, wide, kernel, window.stride, window.padding_before, window.dilation)


def _has_idle_taps(call: Call) -> bool:
    """Whether some meet nothing but padding."""
    return any(positions.start == positions.stop for taps in _along(call) for positions, _ in taps)


def _passes_planes_over(call: Call) -> bool:
    """Whether the wide side is made and, in three dimensions, has planes that no tap meets."""
    is_gradient = "outputMask" in call.values
    planes: tuple[int, ...] = call[sides(call)[0]].shape[2:-2]
    is_made: bool = not call["transposed"] and call["outputMask"][0] if is_gradient else call["transposed"]
    if not is_made or len(planes) == 0:
        return False
    met = {plane for _, those in _along(call)[0] for plane in range(planes[0])[those]}
    return len(met) != planes[0]


def prepared(asked: AskedConvolution, threads: int, exact: Prepared) -> Prepared | Refusal:
    """The result, or the gradients that are wanted; runs that meet NaN or Inf are for a kernel that is exact."""
    call, gradient = asked.call, asked.is_gradient
    roles = asked.names if gradient else tuple(ROLES.get(name, name) for name in asked.names)
    try:
        planned = Bfloat16Plan(call if gradient else as_gradient(call), None if gradient else call["bias"], threads)
        of_bias = (
            sums.plan(call["gradOutput"], 1, call["gradBias"], threads) if gradient and call["outputMask"][2] else None
        )
        size = max(planned.parts().program.arena.size, exact.workspace_size)
    except (onednn.OneDnnError, jit.NoNativeCodeError) as error:
        return Refusal(str(error))

    def instantiate() -> Run:
        execution, again = Bfloat16Execution(planned), exact.instantiate()
        add = SequenceRun([of_bias.step("gradOutput", "gradBias")], asked.names) if of_bias else None

        def run(workspace: Array | None, *tensors: Any) -> None:
            if not execution.run(workspace, dict(zip(roles, tensors, strict=True))):
                again(workspace, *tensors)
            elif add is not None:
                add(workspace, *tensors)

        return run

    return Prepared(instantiate, size)


class Bfloat16Tensor(NamedTuple):
    """A tensor as the program meets it: in the caller's memory, or dense in the workspace where a copy goes."""

    dims: Dims
    strides: Dims
    dtype: DType
    outside: bool

    def layout(self) -> onednn.Layout:
        return onednn.strided(self.dtype, self.dims, self.strides)


class Bfloat16Problem(NamedTuple):
    """Everything a program depends on. `wide` and `narrow` are the tensors before and after the plain convolution:
    input and gradOutput, or gradOutput and input where it is transposed."""

    wide: Bfloat16Tensor
    narrow: Bfloat16Tensor
    weight: Bfloat16Tensor
    grad_input: Bfloat16Tensor | None
    grad_weight: Bfloat16Tensor | None
    bias: Bfloat16Tensor | None  # added to gradInput, which is a convolution forwards
    window: Window
    transposed: bool
    threads: int

    def convolution(self) -> Convolution:
        """Of pictures as they lie where all have their channels last, else in layouts of oneDNN's choice.

        Convolutions over time, of 256 to 512 channels, take 0.91 to 0.97 of the time so.
        """
        pictures = self.wide, self.narrow
        keeps = all(t is None or t.strides == _channels_last(t.dims) for t in (*pictures, self.grad_input))
        wide, narrow = (t.layout() if keeps else onednn.any_layout(BFLOAT16, t.dims) for t in pictures)
        bias = None if self.bias is None else self.bias.layout()
        return Convolution(wide, onednn.any_layout(BFLOAT16, self.weight.dims), narrow, self.window, bias)


def _channels_last(dims: Dims) -> Dims:
    """The strides of a dense picture whose channels lie side by side.

    >>> _channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    channels, *spatial = dims[1:]
    whole, *steps = (channels * math.prod(spatial[d:]) for d in range(len(spatial) + 1))
    return whole, 1, *steps


class Parts(NamedTuple):
    """A program and where the call's tensors go in it."""

    program: Program
    buffers: dict[str, Buffer]


programs: Recent[Parts] = Recent(lambda parts: len(parts.program.steps))


class Bfloat16Plan:
    """How the tensors get in and out, and what is computed between."""

    def __init__(self, gradient: Call, bias: TensorSpec | None, threads: int):
        self.ports = _ports(gradient, threads)
        if bias is not None:
            self.ports["bias"] = input_port(bias, FLOAT32, KEEP, threads)
        self.problem = self._problem(gradient, bias, threads)
        self.watched = self._watched()
        jit.load(*LOOK)

    def _watched(self) -> list[str]:
        """Where to look for NaN and Inf: in each gradient, or in what it is made of, whichever is less."""
        size = {name: port.spec.size for name, port in self.ports.items()}
        watched: list[str] = []
        for made, other in zip(OUTPUTS, ("weight", "input"), strict=True):
            if made in size:
                watched += [made] if size[made] <= size["gradOutput"] + size[other] else ["gradOutput", other]
        return watched

    def parts(self) -> Parts:
        return programs.get(self.problem, lambda: _build(self.problem))

    def _problem(self, call: Call, bias: TensorSpec | None, threads: int) -> Bfloat16Problem:
        def tensor(name: str, groups: int = 1, dtype: DType = BFLOAT16) -> Bfloat16Tensor:
            port = self.ports.get(name)
            spec = bias if name == "bias" and bias is not None else call[name]
            dims, strides = _grouped(spec.shape, port.strides if port is not None else spec.strides, groups)
            return Bfloat16Tensor(dims, strides, dtype, port is None or not port.copies)

        wide, narrow = tensor("input"), tensor("gradOutput")
        if "input" not in self.ports:  # nobody reads it: it may lie as what is made
            wide = wide._replace(strides=tensor("gradInput").strides)
        if call["transposed"]:
            wide, narrow = narrow, wide
        return Bfloat16Problem(
            wide,
            narrow,
            tensor("weight", call["groups"]),
            tensor("gradInput") if "gradInput" in self.ports else None,
            tensor("gradWeight", call["groups"]) if "gradWeight" in self.ports else None,
            None if bias is None else tensor("bias", dtype=FLOAT32),
            window_of(call),
            call["transposed"],
            threads,
        )


def _ports(call: Call, threads: int) -> dict[str, Port]:
    """Ports of everything the wanted gradients need."""
    ports = {"gradOutput": input_port(call["gradOutput"], BFLOAT16, KEEP, threads)}
    for gradient, needed in zip(OUTPUTS, ("weight", "input"), strict=True):
        if gradient in wanted(call):
            ports[needed] = input_port(call[needed], BFLOAT16, KEEP, threads)
            ports[gradient] = output_port(call[gradient], BFLOAT16, threads)
    return ports


def _grouped(dims: Dims, strides: Dims, groups: int) -> tuple[Dims, Dims]:
    """Weights with their groups as an axis of their own."""
    if groups == 1:
        return dims, strides
    channels = dims[0] // groups
    return (groups, channels, *dims[1:]), (strides[0] * channels, *strides)


def _build(problem: Bfloat16Problem) -> Parts:
    with onednn.library().limits.held_at(problem.threads):
        program, convolution = Program(problem.threads), problem.convolution()
        wide, narrow, weight = (_enter(program, t) for t in (problem.wide, problem.narrow, problem.weight))
        grad_output, input_ = (wide, narrow) if problem.transposed else (narrow, wide)
        buffers, laid_out = {"gradOutput": grad_output, "input": input_, "weight": weight}, None
        if problem.bias is not None:
            buffers["bias"] = _enter(program, problem.bias)
        if problem.grad_input is not None:
            buffers["gradInput"] = _enter(program, problem.grad_input)
            laid_out = _add_data(program, problem, convolution, buffers)
        if problem.grad_weight is not None:
            buffers["gradWeight"] = _enter(program, problem.grad_weight)
            _add_weights(program, problem, convolution.backward_weights, buffers, laid_out)
    return Parts(program, buffers)


def _enter(program: Program, tensor: Bfloat16Tensor) -> Buffer:
    return program.tensor(tensor.layout()) if tensor.outside else program.scratch(tensor.layout())


def _add_data(
    program: Program, problem: Bfloat16Problem, convolution: Convolution, buffers: dict[str, Buffer]
) -> Buffer:
    """gradInput. Returns gradOutput as it was laid out, for gradWeight to use."""
    primitive = convolution.forward if problem.transposed else convolution.backward_data
    source, target = (SRC, DST) if problem.transposed else (DIFF_DST, DIFF_SRC)
    laid_out = program.laid_out(buffers["gradOutput"], primitive.layout(source))
    packed = program.laid_out(buffers["weight"], primitive.layout(WEIGHTS))
    bias = {} if problem.bias is None else {BIAS: buffers["bias"]}
    _finish(program, primitive, {source: laid_out, WEIGHTS: packed, **bias}, target, buffers["gradInput"])
    if packed is not buffers["weight"]:
        program.release(packed)
    return laid_out


def _add_weights(
    program: Program,
    problem: Bfloat16Problem,
    primitive: Primitive,
    buffers: dict[str, Buffer],
    laid_out: Buffer | None,
) -> None:
    given = buffers["gradOutput"]
    of_given, of_input = (SRC, DIFF_DST) if problem.transposed else (DIFF_DST, SRC)
    wanted_layout = primitive.layout(of_given)
    if laid_out is None or not laid_out.layout.same_as(wanted_layout):
        if laid_out is not None and laid_out is not given:
            program.release(laid_out)
        laid_out = program.laid_out(given, wanted_layout)
    arguments = {of_given: laid_out, of_input: program.laid_out(buffers["input"], primitive.layout(of_input))}
    _finish(program, primitive, arguments, DIFF_WEIGHTS, buffers["gradWeight"])


def _finish(program: Program, primitive: Primitive, given: dict[int, Buffer], which: int, result: Buffer) -> None:
    """Executes a primitive and puts what it makes into `result`."""
    layout = primitive.layout(which)
    if layout.same_as(result.layout):
        program.execute(primitive, {**given, which: result})
        return
    made = program.scratch(layout)
    program.execute(primitive, {**given, which: made})
    program.copy(made, result)
    program.release(made)


class Bfloat16Execution:
    """What one executor needs to run: memory objects, and launches.

    oneDNN multiplies padding, and what fills its vectors, as if it were zeros, and 0·NaN and 0·Inf are NaN. So a result
    is right if it is finite, or if all that it is made of is; else another kernel makes it, of what is there alone.
    """

    def __init__(self, planned: Bfloat16Plan):
        parts = planned.parts()
        self._session, self._buffers = Session(parts.program), parts.buffers
        self._traffic = Traffic(planned.ports, {name: parts.buffers[name].offset for name in planned.ports})
        self._found = ctypes.c_int64()
        self._inputs, self._outputs = ([n for n in planned.ports if (n in OUTPUTS) == out] for out in (False, True))
        self._guards = {name: self._guard(planned, name) for name in planned.watched}

    def _guard(self, planned: Bfloat16Plan, name: str) -> Work:
        """Looks for NaN and Inf."""
        size = planned.ports[name].spec.size
        threads = worth(size, LOOKS_PER_THREAD, planned.problem.threads)
        return Work(jit.load(*LOOK), size, 1024, [0, ctypes.addressof(self._found)], threads)

    def run(self, workspace: Array | None, given: Given) -> bool:
        """Computes the outputs among the given tensors; False if another kernel must, and they are worth nothing."""
        base = 0 if workspace is None else aligned(address(workspace))
        places = self._traffic.places(given, base)
        self._session.bind(base, [(self._buffers[name], place) for name, place in places.items()])
        for name in self._inputs:
            self._traffic.bring(name, given[name], places)
        if not self._are_finite(self._inputs, places):
            return False
        self._session.run()
        if not self._are_finite(self._outputs, places):
            return False
        for name in self._outputs:
            self._traffic.take(name, given[name], places)
        return True

    def _are_finite(self, names: Sequence[str], places: Mapping[str, int]) -> bool:
        """Whether those of the tensors are that are watched."""
        self._found.value = 0
        for name in names:
            if name in self._guards:
                self._guards[name].point(0, places[name])
                self._guards[name].run()
        return self._found.value == 0
