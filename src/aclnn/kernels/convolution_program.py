"""A convolution's gradients as a program of oneDNN primitives.

Plain      gradInput = backward data of gradOutput; gradWeight = backward weights of input and gradOutput.
Transposed it is the gradient of a plain convolution from gradOutput to input, so the roles are exchanged:
           gradInput = forward of gradOutput; gradWeight = backward weights of gradOutput and input.
A forward convolution is the gradInput of a transposed one, with a bias; and a transposed one that of a plain one.

With one tap that meets every position, gradWeight may be a sum of matrix products, picture by picture: nothing is
reordered, and the convolution's own matrix products are twice as slow (float32, 56×56 pictures, 64 and 256 channels).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from aclnn.base.dtype import FLOAT32, DType
from aclnn.base.geometry import contiguous_strides
from aclnn.base.taps import padding_ends
from aclnn.contract.call import Call
from aclnn.kernels import onednn
from aclnn.kernels.onednn import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    SRC,
    WEIGHTS,
    Convolution,
    Layout,
    Primitive,
    Window,
    any_layout,
    matmul,
    strided,
)
from aclnn.kernels.program import Buffer, Program

Dims = tuple[int, ...]
ANY, LAST, PLAIN = "any", "channels last", "plain"  # layouts of the data inside; weights are always `any`
PRODUCTS = "products"  # no convolution, but matrix products
OF_DATA, OF_WEIGHTS = (ANY, LAST, PLAIN), (ANY, LAST, PLAIN, PRODUCTS)
PER_PICTURE = 100_000  # multiplications that pay for a matrix product of their own


class Tensor(NamedTuple):
    """A tensor as the program meets it: in the caller's memory, or dense in the workspace where a copy goes."""

    dims: Dims
    strides: Dims
    dtype: DType
    outside: bool


class Problem(NamedTuple):
    """Everything a program depends on. `wide` and `narrow` are the tensors before and after the plain convolution:
    input and gradOutput, or gradOutput and input where it is transposed."""

    dtype: DType  # that the primitives compute in
    wide: Tensor
    narrow: Tensor
    weight: Tensor
    grad_input: Tensor | None
    grad_weight: Tensor | None
    window: Window
    transposed: bool
    threads: int
    bias: Tensor | None = None  # a tensor of the program; added to gradInput where that is a forward convolution

    @property
    def adds_bias(self) -> bool:
        return self.bias is not None and self.transposed

    @property
    def groups(self) -> int:
        return self.weight.dims[0] if len(self.weight.dims) > len(self.wide.dims) else 1

    @property
    def products(self) -> int:
        """Multiplications of one of the two gradients."""
        return math.prod(self.narrow.dims) * math.prod(self.weight.dims[-len(self.wide.dims) + 1 :])

    @property
    def pads(self) -> bool:
        return any(self.window.padding_before) or any(p > 0 for p in self.window.padding_after)

    @property
    def is_pointwise(self) -> bool:
        """Whether gradWeight is a sum of products: one tap, every position, float32 that lies channel after channel."""
        tensors = [t for t in (self.wide, self.narrow, self.grad_weight) if t is not None]
        in_order = all(t.strides == contiguous_strides(t.dims) for t in tensors)
        one_tap = (
            self.groups == 1 and math.prod(self.weight.dims[2:]) == 1 and self.wide.dims[2:] == self.narrow.dims[2:]
        )
        enough = self.products >= PER_PICTURE * self.wide.dims[0]
        return self.dtype is FLOAT32 and one_tap and not self.pads and in_order and enough


def window_of(call: Call) -> Window:
    """The window of the plain convolution that the call is, or is the gradient of."""
    wide, narrow = (call[n].shape[2:] for n in ("input", "gradOutput"))
    if call["transposed"]:
        wide, narrow = narrow, wide
    stride, dilation, kernel = call["stride"], call["dilation"], call["weight"].shape[2:]
    before = tuple(front for front, _ in padding_ends(call["padding"], len(wide)))
    axes = zip(narrow, stride, dilation, kernel, wide, before, strict=True)
    after = tuple((n - 1) * s + d * (k - 1) + 1 - w - p for n, s, d, k, w, p in axes)
    return Window(tuple(stride), tuple(dilation), before, after)


def grouped(dims: Dims, strides: Dims, groups: int) -> tuple[Dims, Dims]:
    """Weights with their groups as an axis of their own."""
    if groups == 1:
        return dims, strides
    channels = dims[0] // groups
    return (groups, channels, *dims[1:]), (strides[0] * channels, *strides)


class Parts(NamedTuple):
    """A program and where the call's tensors go in it."""

    program: Program
    buffers: dict[str, Buffer]


def build(problem: Problem, of_data: str, of_weights: str) -> Parts:
    """The program, with the given layouts inside for gradInput and for gradWeight."""
    with onednn.library().limits.held_at(problem.threads):
        program = Program(problem.threads)
        wide, narrow, weight = (_enter(program, t) for t in (problem.wide, problem.narrow, problem.weight))
        grad_output, input_ = (wide, narrow) if problem.transposed else (narrow, wide)
        buffers, laid_out = {"gradOutput": grad_output, "input": input_, "weight": weight}, None
        if problem.bias is not None:
            buffers["bias"] = _enter(program, problem.bias)
        if problem.grad_input is not None:
            buffers["gradInput"] = _enter(program, problem.grad_input)
            laid_out = _add_data(program, problem, of_data, buffers)
        if problem.grad_weight is not None:
            buffers["gradWeight"] = _enter(program, problem.grad_weight)
            _add_weights(program, problem, of_weights, buffers, laid_out)
    return Parts(program, buffers)


def _enter(program: Program, tensor: Tensor) -> Buffer:
    layout = _layout(tensor)
    return program.tensor(layout) if tensor.outside else program.scratch(layout)


def _layout(tensor: Tensor) -> Layout:
    return strided(tensor.dtype, tensor.dims, tensor.strides)


def _made(problem: Problem, layout: str, direction: str) -> Primitive:
    """A primitive; oneDNN chooses the layout where it has no implementation for ours that is fast and right."""
    weights = any_layout(problem.dtype, problem.weight.dims)
    wide, narrow = (_inner(problem.dtype, t.dims, layout) for t in (problem.wide, problem.narrow))
    bias = _layout(problem.bias) if problem.bias is not None and problem.adds_bias else None
    primitive: Primitive = getattr(Convolution(wide, weights, narrow, problem.window, bias), direction)
    if layout != ANY and (
        primitive.implementation.startswith("ref") or _is_wrong(problem, layout, direction, primitive)
    ):
        return _made(problem, ANY, direction)
    return primitive


def _is_wrong(problem: Problem, layout: str, direction: str, primitive: Primitive) -> bool:
    """Whether it is oneDNN 3.2's kernel for one tap with strides and the channels last: on two threads it writes beyond
    its scratchpad (AVX-512), makes wrong sums, or never ends (AVX2)."""
    strides = any(step > 1 for step in problem.window.stride)
    one_tap = primitive.implementation.startswith("jit_1x1")
    return layout == LAST and direction == "backward_weights" and strides and one_tap


def _inner(dtype: DType, dims: Dims, layout: str) -> Layout:
    if layout == ANY:
        return any_layout(dtype, dims)
    if layout == PLAIN:
        return strided(dtype, dims, contiguous_strides(dims))
    batch, *positions, channels = contiguous_strides((dims[0], *dims[2:], dims[1]))
    return strided(dtype, dims, (batch, channels, *positions))


def _add_data(program: Program, problem: Problem, layout: str, buffers: dict[str, Buffer]) -> Buffer:
    """gradInput. Returns gradOutput as it was laid out, for gradWeight to use."""
    primitive = _made(problem, layout, "forward" if problem.transposed else "backward_data")
    source, target = (SRC, DST) if problem.transposed else (DIFF_DST, DIFF_SRC)
    laid_out = program.laid_out(buffers["gradOutput"], primitive.layout(source))
    packed = program.laid_out(buffers["weight"], primitive.layout(WEIGHTS))
    bias = {BIAS: buffers["bias"]} if problem.adds_bias else {}
    _finish(program, primitive, {source: laid_out, WEIGHTS: packed, **bias}, target, buffers["gradInput"])
    if packed is not buffers["weight"]:
        program.release(packed)
    return laid_out


def _add_weights(
    program: Program, problem: Problem, layout: str, buffers: dict[str, Buffer], laid_out: Buffer | None
) -> None:
    if layout == PRODUCTS and problem.is_pointwise:
        _multiply_weights(program, problem, buffers)
        return
    primitive = _made(problem, ANY if layout == PRODUCTS else layout, "backward_weights")
    given = buffers["gradOutput"]
    of_given, of_input = (SRC, DIFF_DST) if problem.transposed else (DIFF_DST, SRC)
    wanted = primitive.layout(of_given)
    if laid_out is None or not laid_out.layout.same_as(wanted):
        if laid_out is not None and laid_out is not given:
            program.release(laid_out)
        laid_out = program.laid_out(given, wanted)
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


def _multiply_weights(program: Program, problem: Problem, buffers: dict[str, Buffer]) -> None:
    """gradWeight = Σ narrow[n]·wide[n]ᵀ over the pictures."""
    batch, before, after = problem.wide.dims[0], problem.wide.dims[1], problem.narrow.dims[1]
    positions = math.prod(problem.wide.dims[2:])
    wide, narrow = ("gradOutput", "input") if problem.transposed else ("input", "gradOutput")
    rows = strided(FLOAT32, (after, positions), (positions, 1))
    columns = strided(FLOAT32, (positions, before), (1, positions))
    result = program.part(buffers["gradWeight"], strided(FLOAT32, (after, before), (before, 1)))
    first, further = (matmul(rows, columns, result.layout, add=add) for add in (False, True))
    for n in range(batch):
        a = program.part(buffers[narrow], rows, n * rows.size)
        b = program.part(buffers[wide], columns, n * columns.size)
        program.execute(further if n else first, {SRC: a, WEIGHTS: b, DST: result})
