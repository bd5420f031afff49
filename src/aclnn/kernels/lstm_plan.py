"""What phase 1 finds out about an LSTM call: sizes, the layout of the workspace, and how tensors get in and out."""

from __future__ import annotations

from typing import NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels import convert, jit, sums
from aclnn.kernels.lstm_program import Products, Step
from aclnn.kernels.lstm_walk import Entries
from aclnn.kernels.program import Arena, Recent


class Sizes(NamedTuple):
    """What the matrices of a call look like."""

    steps: int
    batch: int
    features: int
    hidden: int
    layers: int
    directions: int

    @property
    def rows(self) -> int:
        return self.steps * self.batch

    def width(self, layer: int) -> int:
        """The features that a layer sees."""
        return self.directions * self.hidden if layer else self.features


def sizes_of(call: Call) -> Sizes:
    steps, batch, hidden = call["i"][0].shape
    return Sizes(steps, batch, call["input"].shape[2], hidden, call["numLayers"], 2 if call["bidirectional"] else 1)


class Facts(NamedTuple):
    """What the layout of the workspace, and the primitives, depend on."""

    sizes: Sizes
    scatters: bool  # dx is made in the workspace
    converts: bool  # so are the gradients of the weights
    copies_weights: bool  # a weight is not a dense float32 matrix
    threads: int


class Memory:
    """Where everything lies in the workspace, as offsets, and the products over it."""

    def __init__(self, facts: Facts):
        sizes, arena = facts.sizes, Arena()
        self.arena = arena
        rows, batch, hidden = sizes.rows, sizes.batch, sizes.hidden

        def matrix(rows: int, columns: int, wanted: bool = True) -> int:
            return arena.reserve(4 * rows * columns) if wanted else -1

        self.grad, self.h_prev = matrix(rows, 4 * hidden), matrix(rows, hidden)
        self.dh, self.dh_made, self.dc = (matrix(batch, hidden) for _ in range(3))
        widest = max(sizes.width(layer) for layer in range(sizes.layers))
        self.x = matrix(rows, widest)
        self.w_ih = matrix(4 * hidden, widest, facts.copies_weights)
        self.w_hh = matrix(4 * hidden, hidden, facts.copies_weights or batch == 1)
        self.dw_ih = matrix(4 * hidden, widest, facts.converts)
        self.dw_hh = matrix(4 * hidden, hidden, facts.converts)
        self.between = [matrix(rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self.dx = matrix(rows, sizes.features, facts.scatters)
        self.step = Step(batch, hidden, facts.threads, arena)
        kinds = {(sizes.width(layer), d > 0) for layer in range(sizes.layers) for d in range(sizes.directions)}
        self.products = {(w, add): Products(rows, w, hidden, add, facts.threads, arena) for w, add in sorted(kinds)}
        of_step = [] if self.step.one_row is not None else [self.step.program]
        self.programs = [*of_step, *(p.program for p in self.products.values())]


memories: Recent[Memory] = Recent(lambda memory: sum(len(program.steps) for program in memory.programs))


class Plan:
    """What phase 1 finds out: how every tensor gets in and out, with the code for it loaded."""

    def __init__(self, call: Call, threads: int):
        self.call, self.sizes, self.dtype = call, sizes_of(call), call["input"].dtype
        self.variable = call["batchSizesOptional"] is not None
        self.entries = Entries.load(self.dtype)
        letter = jit.POINTER[self.dtype]
        self.gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
        self.scatter = jit.load("lstm.scatter", f"Fi{letter}iiiiI")
        self.usable = [_is_matrix(s) for s in call["params"]]
        converts = not all(map(_is_matrix, call["dparamsOut"]))
        self.facts = Facts(self.sizes, self._scatters(), converts, not all(self.usable), threads)
        self.gathers = self._gathers()
        self.states = [self._state(name, threads) for name in ("dh", "dc", "dhPrevOut", "dcPrevOut")]
        params, dparams = call["params"], call["dparamsOut"]
        self.weights = [convert.plan(s, dense(FLOAT32, s.shape), threads) for s in params]
        self.gradients = [None if _is_matrix(s) else convert.plan(dense(FLOAT32, s.shape), s, threads) for s in dparams]
        rows = dense(FLOAT32, (self.sizes.rows, 4 * self.sizes.hidden))
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
