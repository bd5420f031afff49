"""Convolution forwards on oneDNN: float32, float16 and bfloat16, plain or transposed, one to three dimensions.

A plain convolution is the gradient, by its input, of a transposed one with the same weight, and the other way round:
the programs of convolution_program serve. oneDNN adds the bias where it convolves forwards; to the result of a
transposed convolution it is added afterwards, before that is rounded.
"""

from __future__ import annotations

from typing import Any

from aclnn.base.dtype import FLOAT32, promote
from aclnn.base.geometry import Array
from aclnn.base.rounding import KEEP
from aclnn.base.tensor import dense
from aclnn.contract.call import Call
from aclnn.kernels import convert, convolution_layouts, convolution_on_tiles, jit, onednn
from aclnn.kernels.convolution_execution import Execution
from aclnn.kernels.convolution_fast import FEW, compute_dtype, gives_way, problem_of, programs, rounding_of
from aclnn.kernels.convolution_forward import convolution_numpy
from aclnn.kernels.convolution_layouts import Layouts
from aclnn.kernels.convolution_program import Problem, Tensor, build
from aclnn.kernels.entry import Entry
from aclnn.kernels.ports import Port, entrance, exit_
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.threads import Work, worth

TENSORS = ("input", "weight", "bias", "output")
ROLES = {"gradOutput": "input", "weight": "weight", "bias": "bias", "gradInput": "output"}
"""What the tensors of a program for gradients are here."""


def too_small(call: Call) -> str | None:
    products = call["output"].size * call["weight"].size // max(call["weight"].shape[0], 1)
    return f"{products} products are fewer than {FEW}" if products < FEW else None


@kernel("aclnnConvolution", "tiles", engine="fast", too_small=too_small, gives_way=gives_way)
def convolution_on_tiles_fast(call: Call, threads: int) -> Prepared | Refusal:
    if (reason := _not_taken(call) or convolution_on_tiles.too_far(call)) is not None:
        return Refusal(reason)
    gradient = _as_gradient(call)
    try:
        return convolution_on_tiles.prepared_forward(call, gradient, threads, rounding_of(gradient), convolution_numpy)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))


@kernel("aclnnConvolution", "onednn", engine="fast", too_small=too_small)
def convolution_fast(call: Call, threads: int) -> Prepared | Refusal:
    reason = _not_taken(call)
    return prepared(call, threads) if reason is None else Refusal(reason)


def _not_taken(call: Call) -> str | None:
    specs = [call[name] for name in TENSORS if call[name] is not None]
    if any(s.dtype not in jit.POINTER for s in specs):
        return "it takes float32, float16 and bfloat16"
    return "a tensor is empty" if any(s.is_empty for s in specs) else None


def prepared(call: Call, threads: int, layouts: Layouts | None = None) -> Prepared | Refusal:
    """The plan of a call that is not empty, with the layouts of the table unless they are given."""
    try:
        return _prepared(call, threads, layouts)
    except (onednn.OneDnnError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))


def _prepared(call: Call, threads: int, layouts: Layouts | None) -> Prepared:
    ports, problem = _planned(call, threads)
    chosen = layouts or convolution_layouts.choose(problem)
    adds = call["bias"] is not None and call["transposed"]
    entry = jit.load("convert.add_bias", "FFii") if adds else None

    def instantiate() -> Run:
        added = None if entry is None else _addition(call, entry, threads)
        parts = programs.get((problem, chosen), lambda: build(problem, *chosen))
        execution, exact = Execution(parts, ports, problem, ("gradInput",), added), convolution_numpy(call)

        def run(workspace: Array | None, *tensors: Any) -> None:
            given = dict(zip(TENSORS, tensors, strict=True))
            if not execution.run(workspace, {role: given[name] for role, name in ROLES.items()}):
                exact(None, *tensors)

        return run

    return Prepared(instantiate, programs.get((problem, chosen), lambda: build(problem, *chosen)).program.arena.size)


def _planned(call: Call, threads: int) -> tuple[dict[str, Port], Problem]:
    """How the tensors get in and out, and what is computed between."""
    gradient, bias = _as_gradient(call), call["bias"]
    adds = bias is not None and call["transposed"]
    dtype = FLOAT32 if adds else compute_dtype(gradient)
    rounding = rounding_of(gradient)
    ports = {name: entrance(gradient[name], dtype, rounding, threads) for name in ("gradOutput", "weight")}
    ports["gradInput"] = _in_workspace(call, threads) if adds else exit_(call["output"], dtype, threads)
    problem = problem_of(gradient, dtype, ports, threads)
    if bias is not None:
        ports["bias"] = entrance(bias, FLOAT32, KEEP, threads)
        tensor = Tensor(bias.shape, ports["bias"].strides, FLOAT32, not ports["bias"].copies)
        problem = problem._replace(bias=tensor)
    return ports, problem


def _in_workspace(call: Call, threads: int) -> Port:
    """The port of an output that is dense float32, channel after channel, until it has its bias."""
    spec = call["output"]
    if spec.dtype is FLOAT32 and spec.is_contiguous:
        return exit_(spec, FLOAT32, threads)
    made = dense(FLOAT32, spec.shape)
    return Port(spec, made.strides, (convert.plan(made, spec, threads),))


def _as_gradient(call: Call) -> Call:
    """The call for gradInput that computes the same."""
    same = ("weight", "stride", "padding", "dilation", "groups", "cubeMathType")
    computed = promote(call[name].dtype for name in ("input", "weight"))
    values = {name: call[name] for name in same} | {
        "gradOutput": call["input"],
        "input": dense(computed, call["output"].shape),
        "gradInput": call["output"],
        "gradWeight": None,
        "transposed": not call["transposed"],
        "outputMask": (True, False, False),
    }
    return Call(values, call.product)


def _addition(call: Call, entry: Entry, threads: int) -> Any:
    batch, channels = call["output"].shape[:2]
    size = call["output"].size // (batch * channels)
    team = worth(call["output"].size, convert.PER_THREAD, threads)
    work = Work(entry, batch * channels, 1, [0, 0, channels, size], team)

    def add(places: dict[str, int]) -> None:
        work.point(0, places["gradInput"], places["bias"])
        work.run()

    return add
