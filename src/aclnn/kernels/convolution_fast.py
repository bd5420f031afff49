"""Convolution on oneDNN: float32, float16 and bfloat16, plain or transposed, one to three dimensions."""

from __future__ import annotations

from typing import Any

from aclnn.base.dtype import BFLOAT16, FLOAT32, DType, promote
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP
from aclnn.contract.call import Call
from aclnn.kernels import convolution_direct as convolution_direct  # whose kernels are asked first
from aclnn.kernels import convolution_layouts, convolution_on_tiles, jit, onednn, precedence, sums
from aclnn.kernels.convolution import convolution_backward_numpy
from aclnn.kernels.convolution_execution import Execution
from aclnn.kernels.convolution_layouts import Layouts
from aclnn.kernels.convolution_program import Parts, Problem, Tensor, build, grouped, window_of
from aclnn.kernels.ports import Port, entrance, exit_
from aclnn.kernels.program import Recent
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.strides import address
from aclnn.kernels.threads import Work

FEW = 300_000  # products of a gradient: below, numpy takes less than loading oneDNN and making its primitives
INPUTS = ("gradOutput", "input", "weight")
OUTPUTS = ("gradInput", "gradWeight")

programs: Recent[Parts] = Recent(lambda parts: len(parts.program.steps))


def too_small(call: Call) -> str | None:
    products = call["gradOutput"].size * call["weight"].size // max(call["weight"].shape[0], 1)
    return f"{products} products are fewer than {FEW}" if products < FEW else None


def gives_way(call: Call) -> str | None:
    return precedence.of_convolution(call)


@kernel("aclnnConvolutionBackward", "tiles", engine="fast", too_small=too_small, gives_way=gives_way)
def convolution_backward_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    if (reason := _not_taken(call) or convolution_on_tiles.too_far(call)) is not None:
        return Refusal(reason)
    try:
        return convolution_on_tiles.prepared_backward(call, threads, rounding_of(call), convolution_backward_numpy)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))


@kernel("aclnnConvolutionBackward", "onednn", engine="fast", too_small=too_small)
def convolution_backward_fast(call: Call, threads: int) -> Prepared | Refusal:
    reason = _not_taken(call)
    return prepared(call, threads) if reason is None else Refusal(reason)


def _not_taken(call: Call) -> str | None:
    """Why no kernel for gradInput and gradWeight takes a call, if none does."""
    specs = [call[n] for n in (*INPUTS, *_wanted(call))]
    if any(s.dtype not in jit.POINTER for s in specs):
        return "it takes float32, float16 and bfloat16"
    if any(s.is_empty for s in specs):
        return "a tensor is empty"
    return None if _wanted(call) else "it computes gradInput and gradWeight, of which none is wanted"


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
    dtype = compute_dtype(call)
    ports = _ports(call, dtype, threads)
    problem = problem_of(call, dtype, ports, threads)
    chosen = layouts or convolution_layouts.choose(problem)
    bias = sums.plan(call["gradOutput"], 1, call["gradBias"], threads) if call["outputMask"][2] else None

    def parts() -> Parts:
        return programs.get((problem, chosen), lambda: build(problem, *chosen))

    def instantiate() -> Run:
        execution, exact = Execution(parts(), ports, problem, OUTPUTS), convolution_backward_numpy(call)
        bias_work = bias.work() if bias else None

        def run(workspace: Array | None, *tensors: Any) -> None:
            if not execution.run(workspace, dict(zip((*INPUTS, *OUTPUTS), tensors, strict=False))):
                exact(None, *tensors)
            elif bias_work is not None:
                _sum(bias_work, tensors[0], tensors[-1])

        return run

    return Prepared(instantiate, parts().program.arena.size)


def compute_dtype(call: Call) -> DType:
    """What the primitives compute in: bfloat16 where the processor multiplies it, or only loads it; else float32."""
    if promote(call[n].dtype for n in INPUTS) is not BFLOAT16:
        return FLOAT32
    lib = onednn.library()
    return BFLOAT16 if lib.has_bfloat16 or (lib.has_avx512 and _is_small_depthwise(call)) else FLOAT32


def _is_small_depthwise(call: Call) -> bool:
    """Whether oneDNN has primitives that load bfloat16, compute in float32 and store bfloat16, with any AVX-512.

    They take half as long as conversions of whole tensors to float32 and back.
    """
    groups, (channels, each, *kernel) = call["groups"], call["weight"].shape
    depthwise = groups == channels > each == 1
    return depthwise and len(kernel) == 2 and max(kernel) <= 3 and max(call["dilation"]) == 1


def rounding_of(call: Call) -> int:
    """How the inputs are rounded first: cubeMathType speaks of float32 only."""
    return call["cubeMathType"] if promote(call[n].dtype for n in INPUTS) is FLOAT32 else KEEP


def _ports(call: Call, dtype: DType, threads: int) -> dict[str, Port]:
    """Ports of everything the wanted gradients need."""
    rounding = rounding_of(call)
    ports = {"gradOutput": entrance(call["gradOutput"], dtype, rounding, threads)}
    for gradient, needed in zip(OUTPUTS, ("weight", "input"), strict=True):
        if gradient in _wanted(call):
            ports[needed] = entrance(call[needed], dtype, rounding, threads)
            ports[gradient] = exit_(call[gradient], dtype, threads)
    return ports


def problem_of(call: Call, dtype: DType, ports: dict[str, Port], threads: int) -> Problem:
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
