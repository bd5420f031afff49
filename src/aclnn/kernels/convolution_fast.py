"""Convolution on oneDNN: float32, float16 and bfloat16, plain or transposed, one to three dimensions."""

from __future__ import annotations

import ctypes

from aclnn.base.dtype import BFLOAT16, FLOAT32, DType, promote
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP
from aclnn.contract.call import Call
from aclnn.kernels import convolution_layouts, jit, onednn, sums
from aclnn.kernels.convolution import convolution_backward_numpy
from aclnn.kernels.convolution_layouts import Layouts
from aclnn.kernels.convolution_program import Parts, Problem, Tensor, build, grouped, window_of
from aclnn.kernels.ports import Port, entrance, exit_
from aclnn.kernels.program import Buffer, Recent, Session, aligned
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.strides import address
from aclnn.kernels.threads import Work, worth

FEW = 300_000  # products of a gradient: below, numpy takes less than loading oneDNN and making its primitives
INPUTS = ("gradOutput", "input", "weight")
OUTPUTS = ("gradInput", "gradWeight")

programs: Recent[Parts] = Recent()


def too_small(call: Call) -> str | None:
    products = call["gradOutput"].size * call["weight"].size // max(call["weight"].shape[0], 1)
    return f"{products} products are fewer than {FEW}" if products < FEW else None


@kernel("aclnnConvolutionBackward", "onednn", engine="fast", too_small=too_small)
def convolution_backward_fast(call: Call, threads: int) -> Prepared | Refusal:
    specs = [call[n] for n in (*INPUTS, *_wanted(call))]
    if any(s.dtype not in jit.POINTER for s in specs):
        return Refusal("it takes float32, float16 and bfloat16")
    if any(s.is_empty for s in specs):
        return Refusal("a tensor is empty")
    if not _wanted(call):
        return Refusal("it computes gradInput and gradWeight, of which none is wanted")
    return prepared(call, threads)


@kernel("aclnnConvolutionBackward", "numba", engine="fast", too_small=too_small)
def convolution_bias_fast(call: Call, threads: int) -> Prepared | Refusal:
    """gradBias alone."""
    grad_output = call["gradOutput"]
    if _wanted(call) or grad_output.dtype not in jit.POINTER or grad_output.is_empty:
        return Refusal("it computes gradBias alone, of float32, float16 or bfloat16")
    try:
        bias = sums.plan(grad_output, 1, call["gradBias"], threads)
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))

    def instantiate() -> Run:
        work = bias.work()

        def run(workspace: Array | None, grad_output: Array, *rest: Array | None) -> None:
            _sum(work, grad_output, rest[-1])

        return run

    return Prepared(instantiate)


def _sum(work: Work, grad_output: Array, grad_bias: Array | None) -> None:
    assert grad_bias is not None
    work.point(0, address(grad_output))
    work.point(2, address(grad_bias))
    work.run()


def _wanted(call: Call) -> tuple[str, ...]:
    return tuple(name for name, on in zip(OUTPUTS, call["outputMask"], strict=False) if on)


def prepared(call: Call, threads: int, layouts: Layouts | None = None) -> Prepared | Refusal:
    """The plan of a call that is not empty, with the layouts of the table unless they are given."""
    try:
        return _prepared(call, threads, layouts)
    except (onednn.OneDnnError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))


def _prepared(call: Call, threads: int, layouts: Layouts | None) -> Prepared:
    dtype = _compute(call)
    ports = _ports(call, dtype, threads)
    problem = _problem(call, dtype, ports, threads)
    chosen = layouts or convolution_layouts.choose(problem)
    bias = sums.plan(call["gradOutput"], 1, call["gradBias"], threads) if call["outputMask"][2] else None

    def parts() -> Parts:
        return programs.get((problem, chosen), lambda: build(problem, *chosen))

    def instantiate() -> Run:
        return Execution(call, parts(), ports, problem, bias).run

    return Prepared(instantiate, parts().program.arena.size)


def _compute(call: Call) -> DType:
    """What the primitives compute in: bfloat16 where the processor multiplies it, else float32."""
    native = promote(call[n].dtype for n in INPUTS) is BFLOAT16 and onednn.library().has_bfloat16
    return BFLOAT16 if native else FLOAT32


def _ports(call: Call, dtype: DType, threads: int) -> dict[str, Port]:
    """Ports of everything the wanted gradients need."""
    rounded = promote(call[n].dtype for n in INPUTS) is FLOAT32
    rounding = call["cubeMathType"] if rounded else KEEP
    ports = {"gradOutput": entrance(call["gradOutput"], dtype, rounding, threads)}
    for gradient, needed in zip(OUTPUTS, ("weight", "input"), strict=True):
        if gradient in _wanted(call):
            ports[needed] = entrance(call[needed], dtype, rounding, threads)
            ports[gradient] = exit_(call[gradient], dtype, threads)
    return ports


def _problem(call: Call, dtype: DType, ports: dict[str, Port], threads: int) -> Problem:
    groups = call["groups"]

    def tensor(name: str, groups: int = 1) -> Tensor:
        port = ports.get(name)
        strides = port.strides if port is not None else call[name].strides
        dims, steps = grouped(call[name].shape, strides, groups)
        return Tensor(dims, steps, dtype, port is None or not port.copies)

    wide, narrow = tensor("input"), tensor("gradOutput")
    if call["transposed"]:
        wide, narrow = narrow, wide
    return Problem(
        dtype,
        wide,
        narrow,
        tensor("weight", groups),
        tensor("gradInput") if "gradInput" in ports else None,
        tensor("gradWeight", groups) if "gradWeight" in ports else None,
        window_of(call),
        call["transposed"],
        threads,
    )


class Execution:
    """What one executor needs to run: memory objects, launches, and the numpy kernel for what oneDNN gets wrong.

    oneDNN multiplies padding as if it were zeros, and 0·NaN is NaN. Padding meets the weight in gradInput, and the
    result shows it in gradWeight: if one of the two is not finite, the call is computed by the kernel that leaves
    padding out.
    """

    def __init__(self, call: Call, parts: Parts, ports: dict[str, Port], problem: Problem, bias: sums.Sums | None):
        self._session = Session(parts.program)
        self._ports = ports
        self._buffers = {n: b for n, b in zip((*INPUTS, *OUTPUTS), parts[1:], strict=True) if b is not None}
        self._copies = {n: [c.work() for c in p.copies] for n, p in ports.items()}
        self._bias = bias.work() if bias else None
        self._exact = convolution_backward_numpy(call)
        self._guards = {
            n: Guard(call[n].size, problem) for n in ("weight", "gradWeight") if n in ports and problem.pads
        }

    def run(
        self,
        workspace: Array | None,
        grad_output: Array,
        input: Array,
        weight: Array,
        grad_input: Array | None,
        grad_weight: Array | None,
        grad_bias: Array | None,
    ) -> None:
        given = dict(zip((*INPUTS, *OUTPUTS), (grad_output, input, weight, grad_input, grad_weight), strict=True))
        base = 0 if workspace is None else aligned(address(workspace))
        places = {name: self._place(name, given[name], base) for name in self._ports}
        self._session.bind(base, [(self._buffers[name], place) for name, place in places.items()])
        for name in INPUTS:
            self._copy(name, given[name], places)
        finite = self._is_finite("weight", places)
        if finite:
            self._session.run()
            finite = self._is_finite("gradWeight", places)
        if not finite:
            self._exact(None, grad_output, input, weight, grad_input, grad_weight, grad_bias)
            return
        for name in OUTPUTS:
            self._copy(name, given[name], places)
        if self._bias is not None:
            _sum(self._bias, grad_output, grad_bias)

    def _place(self, name: str, array: Array | None, base: int) -> int:
        """Where the program meets a tensor."""
        buffer: Buffer = self._buffers[name]
        if buffer.offset is not None:
            return base + buffer.offset
        assert array is not None
        return address(array)

    def _copy(self, name: str, array: Array | None, places: dict[str, int]) -> None:
        """Runs the copies of a port: from the caller's memory for an input, to it for an output."""
        for i, work in enumerate(self._copies.get(name, ())):
            assert array is not None
            place = places[name]
            outside = place if i else address(array)  # a second copy, a rounding, works in place
            work.point(0, *((outside, place) if name in INPUTS else (place, outside)))
            work.run()

    def _is_finite(self, name: str, places: dict[str, int]) -> bool:
        return name not in self._guards or self._guards[name].finds_nothing(places[name])


class Guard:
    """Looks for NaN and Inf in dense memory."""

    def __init__(self, size: int, problem: Problem):
        self._found = ctypes.c_int64()
        entry = jit.load("convert.find_not_finite", jit.POINTER[problem.dtype] + "I")
        arguments = [0, ctypes.addressof(self._found)]
        self._work = Work(entry, size, 1024, arguments, worth(size, sums.PER_THREAD, problem.threads))

    def finds_nothing(self, place: int) -> bool:
        self._found.value = 0
        self._work.point(0, place)
        self._work.run()
        return self._found.value == 0
