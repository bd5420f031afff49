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
    gathers: tuple[bool, ...]  # per layer: its input must be copied before it is a float32 matrix
    scatters: bool  # dx is made in the workspace
    converts: bool  # so are the weights, read and written
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
        gathered = [sizes.width(layer) for layer, on in enumerate(facts.gathers) if on]
        self.x = matrix(rows, max(gathered, default=0), bool(gathered))
        self.between = [matrix(rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self.dx = matrix(rows, sizes.features, facts.scatters)
        widest = max(sizes.width(0), sizes.width(1)) if sizes.layers > 1 else sizes.width(0)
        self.w_ih, self.dw_ih = (matrix(4 * hidden, widest, facts.converts) for _ in range(2))
        self.w_hh, self.dw_hh = (matrix(4 * hidden, hidden, facts.converts) for _ in range(2))
        self.step = Step(batch, hidden, facts.threads, arena)
        kinds = {(sizes.width(layer), d > 0) for layer in range(sizes.layers) for d in range(sizes.directions)}
        self.products = {(w, add): Products(rows, w, hidden, add, facts.threads, arena) for w, add in sorted(kinds)}


memories: Recent[Memory] = Recent()


class Plan:
    """What phase 1 finds out: how every tensor gets in and out, with the code for it loaded."""

    def __init__(self, call: Call, threads: int):
        self.call, self.sizes, self.dtype = call, sizes_of(call), call["input"].dtype
        self.variable = call["batchSizesOptional"] is not None
        self.entries = Entries.load(self.dtype)
        letter = jit.POINTER[self.dtype]
        self.gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
        self.scatter = jit.load("lstm.scatter", f"Fi{letter}iiiiI")
        self.facts = Facts(self.sizes, self._gathers(), self._scatters(), self._converts(), threads)
        self.states = [self._state(name, threads) for name in ("dh", "dc", "dhPrevOut", "dcPrevOut")]
        self.weights = [self._weights(name, threads) for name in ("params", "dparamsOut")]
        rows = dense(FLOAT32, (self.sizes.rows, 4 * self.sizes.hidden))
        self.biases = [sums.plan(rows, 1, spec, threads) for spec in call["dparamsOut"] if spec.rank == 1]

    def memory(self) -> Memory:
        return memories.get(self.facts, lambda: Memory(self.facts))

    def _gathers(self) -> tuple[bool, ...]:
        """A layer's input is used where it lies if it is one dense float32 matrix with no gaps in time."""
        inputs = [self.call["input"], *(self.call["h"][:: self.sizes.directions][:-1])]
        usable = not self.variable and self.dtype is FLOAT32
        first = usable and not self.call["batchFirst"] and inputs[0].is_contiguous
        return not first, *(not (usable and self.sizes.directions == 1 and h.is_contiguous) for h in inputs[1:])

    def _scatters(self) -> bool:
        out = self.call["dxOut"]
        return self.variable or self.dtype is not FLOAT32 or self.call["batchFirst"] or not out.is_contiguous

    def _converts(self) -> bool:
        matrices = [s for name in ("params", "dparamsOut") for s in self.call[name] if s.rank == 2]
        return self.dtype is not FLOAT32 or not all(s.is_contiguous for s in matrices)

    def _state(self, name: str, threads: int) -> convert.Copy:
        """From a slice of dh or dc to our matrix, or from it to a slice of dhPrev or dcPrev."""
        spec = self.call[name]
        slice_ = TensorSpec(spec.dtype, spec.shape[1:], spec.strides[1:])
        ours = dense(FLOAT32, slice_.shape)
        return convert.plan(ours, slice_, threads) if name.endswith("Out") else convert.plan(slice_, ours, threads)

    def _weights(self, name: str, threads: int) -> list[convert.Copy | None]:
        """The copies that params and dparams need; None where one is used where it lies, or is a bias."""
        found: list[convert.Copy | None] = []
        for spec in self.call[name]:
            ours = dense(FLOAT32, spec.shape)
            if spec.rank == 1 or (spec.dtype is FLOAT32 and spec.is_contiguous):
                found.append(None)
            else:
                found.append(
                    convert.plan(ours, spec, threads) if name == "dparamsOut" else convert.plan(spec, ours, threads)
                )
        return found
