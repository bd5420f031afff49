"""What phase 1 finds out about an LSTM call: sizes, the layout of the workspace, and how tensors get in and out."""

from __future__ import annotations

from typing import NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels import convert, jit, sums
from aclnn.kernels.convolution_boxes import spread
from aclnn.kernels.lstm_products import Engine, Product, WeightSums
from aclnn.kernels.lstm_walk import Entries, Sizes
from aclnn.kernels.program import Arena, Recent


def sizes_of(call: Call) -> Sizes:
    steps, batch, hidden = call["i"][0].shape
    return Sizes(steps, batch, call["input"].shape[2], hidden, call["numLayers"], 2 if call["bidirectional"] else 1)


class Facts(NamedTuple):
    """What the layout of the workspace, and the primitives, depend on."""

    sizes: Sizes
    scatters: bool  # dx is made in the workspace
    converts: bool  # so are the gradients of the weights
    copies_weights: bool  # a weight is not a dense float32 matrix
    engine: Engine
    threads: int


class Memory:
    """Where everything lies in the workspace, as offsets, and the products over it."""

    def __init__(self, facts: Facts):
        sizes, arena, engine, threads = facts.sizes, Arena(), facts.engine, facts.threads
        self.arena = arena
        rows, batch, hidden, gates = sizes.rows, sizes.batch, sizes.hidden, 4 * sizes.hidden
        self.pitch = spread(gates) if engine.spreads else gates

        def matrix(rows: int, columns: int, wanted: bool = True) -> int:
            return arena.reserve(4 * rows * columns) if wanted else -1

        self.grad, self.h_prev = matrix(rows, self.pitch), matrix(rows, hidden)
        self.dh, self.dh_made, self.dc = (matrix(batch, hidden) for _ in range(3))
        widths = {sizes.width(layer) for layer in range(sizes.layers)}
        self.x = matrix(rows, max(widths))
        self.w_ih = matrix(gates, max(widths), facts.copies_weights)
        self.w_hh = matrix(gates, hidden, facts.copies_weights)
        self.dw_ih = matrix(gates, max(widths), facts.converts)
        self.dw_hh = matrix(gates, hidden, facts.converts)
        self.between = [matrix(rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self.dx = matrix(rows, sizes.features, facts.scatters)
        grad, grads = (TensorSpec(FLOAT32, (n, gates), (self.pitch, 1)) for n in (batch, rows))
        w_hh = dense(FLOAT32, (gates, hidden))
        self.step = engine.product(grad, w_hh, dense(FLOAT32, (batch, hidden)), 0, threads, arena)
        self.dx_products: dict[tuple[int, bool], Product] = {}
        self.weight_sums: dict[int, WeightSums] = {}
        for width in sorted(widths):
            w_ih, x = dense(FLOAT32, (gates, width)), dense(FLOAT32, (rows, width))
            for adds in (False, True)[: sizes.directions]:
                self.dx_products[width, adds] = engine.product(grads, w_ih, x, 0, threads, arena, adds)
            self.weight_sums[width] = engine.weight_sums(grads, x, dense(FLOAT32, (rows, hidden)), threads, arena)
        products = (self.step, *self.dx_products.values())
        self.primitives = sum(p.primitives for p in products) + sum(s.primitives for s in self.weight_sums.values())


memories: Recent[Memory] = Recent(lambda memory: memory.primitives)


class Plan:
    """What phase 1 finds out: how every tensor gets in and out, with the code for it loaded."""

    def __init__(self, call: Call, engine: Engine, threads: int):
        self.call, self.sizes, self.dtype = call, sizes_of(call), call["input"].dtype
        self.variable = call["batchSizesOptional"] is not None
        self.entries = Entries.load(self.dtype)
        letter = jit.POINTER[self.dtype]
        self.gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
        self.scatter = jit.load("lstm.scatter", f"Fi{letter}iiiiI")
        self.usable = [_is_matrix(s) for s in call["params"]]
        converts = not all(map(_is_matrix, call["dparamsOut"]))
        self.facts = Facts(self.sizes, self._scatters(), converts, not all(self.usable), engine, threads)
        self.gathers = self._gathers()
        self.states = [self._state(name, threads) for name in ("dh", "dc", "dhPrevOut", "dcPrevOut")]
        params, dparams = call["params"], call["dparamsOut"]
        self.weights = [convert.plan(s, dense(FLOAT32, s.shape), threads) for s in params]
        self.gradients = [None if _is_matrix(s) else convert.plan(dense(FLOAT32, s.shape), s, threads) for s in dparams]
        rows = TensorSpec(FLOAT32, (self.sizes.rows, 4 * self.sizes.hidden), (self.memory().pitch, 1))
        self.biases = [sums.plan(rows, 1, spec, threads) for spec in dparams if spec.rank == 1]

    def memory(self) -> Memory:
        return memories.get(self.facts, lambda: Memory(self.facts))

    def _gathers(self) -> tuple[bool, ...]:
        """Which layers' inputs must be copied first: all but dense float32 matrices with no gaps in time."""
        inputs = [self.call["input"], *(self.call["h"][:: self.sizes.directions][:-1])]
        usable = not self.variable and self.dtype is FLOAT32
        first = usable and not self.call["batchFirst"] and inputs[0].is_contiguous
        return not first, *(not (usable and self.sizes.directions == 1 and h.is_contiguous) for h in inputs[1:])

    def _scatters(self) -> bool:
        out = self.call["dxOut"]
        return self.variable or self.dtype is not FLOAT32 or self.call["batchFirst"] or not out.is_contiguous

    def _state(self, name: str, threads: int) -> convert.Copy:
        """From a slice of dh or dc to our matrix, or from it to a slice of dhPrev or dcPrev."""
        spec = self.call[name]
        slice_ = TensorSpec(spec.dtype, spec.shape[1:], spec.strides[1:])
        ours = dense(FLOAT32, slice_.shape)
        return convert.plan(ours, slice_, threads) if name.endswith("Out") else convert.plan(slice_, ours, threads)


def _is_matrix(spec: TensorSpec) -> bool:
    """Whether the products can use a weight where it lies, or it is a bias, of which there is no product."""
    return spec.rank == 1 or (spec.dtype is FLOAT32 and spec.is_contiguous)
