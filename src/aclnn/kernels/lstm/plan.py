"""What phase 1 finds out about an LSTM call: sizes, the layout of the workspace, and how tensors get in and out."""

from __future__ import annotations

from typing import NamedTuple

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.lstm.program import LoopEntries
from aclnn.kernels.matmul import matrix
from aclnn.kernels.native import jit
from aclnn.kernels.shared import convert, sums
from aclnn.kernels.shared.arena import Arena, spread
from aclnn.kernels.shared.launch import Launch, Numbers, Room


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

    @property
    def widths(self) -> list[int]:
        return sorted({self.width(layer) for layer in range(self.layers)})


def sizes_of(call: Call) -> Sizes:
    steps, batch, hidden = call["i"][0].shape
    return Sizes(steps, batch, call["input"].shape[2], hidden, call["numLayers"], 2 if call["bidirectional"] else 1)


class BackwardPlan:
    """How every tensor gets in and out, where everything lies in the workspace, and what is launched, loaded."""

    def __init__(self, call: Call, threads: int):
        self.call, self.sizes, self.dtype, self.threads = call, sizes_of(call), call["input"].dtype, threads
        self.variable = call["batchSizesOptional"] is not None
        letter = jit.POINTER[self.dtype]
        top, below = (jit.load("lstm.gates", f"Fiiiiii{letter * 6}{dy}FFFFI{letter}FFiiii") for dy in (letter, "F"))
        self.entries = LoopEntries(top, below, jit.load("lstm.time_loop", "IIII"))
        self.gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
        self.scatter = jit.load("lstm.scatter", f"Fi{letter}iiiiI")
        self.gathers, self.scatters = self._gathers(), self._scatters()
        self.states = [self._state(name) for name in ("dh", "dc", "dhPrevOut", "dcPrevOut")]
        self._lay_out()
        self._plan_products()
        rows = TensorSpec(FLOAT32, (self.sizes.rows, 4 * self.sizes.hidden), (self.pitch, 1))
        biases = [spec for spec in call["dparamsOut"] if spec.rank == 1]
        self.biases = [  # db_ih = Σ grad = db_hh
            (sums.plan(rows, 1, one, threads), convert.plan(one, same, threads))
            for one, same in zip(biases[::2], biases[1::2], strict=True)
        ]

    def _lay_out(self) -> None:
        """Reserves all matrices of float32 that live as long as a layer, or longer."""
        sizes, self.arena, self.numbers = self.sizes, Arena(), Numbers()
        self.pitch = spread(4 * sizes.hidden)  # often a power of two: rows are laid a line more apart

        def matrix(rows: int, columns: int, wanted: bool = True) -> int:
            return self.arena.reserve(4 * rows * columns) if wanted else -1

        self.grad, self.h_prev = matrix(sizes.rows, self.pitch), matrix(sizes.rows, sizes.hidden)
        self.dh, self.dc = (matrix(sizes.batch, sizes.hidden) for _ in range(2))
        self.x = matrix(sizes.rows, sizes.widths[-1], any(self.gathers))
        self.between = [matrix(sizes.rows, sizes.width(1), sizes.layers > n) for n in (1, 2)]
        self.dx = matrix(sizes.rows, sizes.features, self.scatters)

    def _plan_products(self) -> None:
        """By layer and direction the packing of both weights, then a step, dx and the gradients of the weights."""
        sizes, room = self.sizes, Room(self.arena, self.numbers, self.threads)
        params, dparams = self.call["params"], self.call["dparamsOut"]
        each = len(params) // (sizes.layers * sizes.directions)
        grad, grads = (TensorSpec(FLOAT32, (n, 4 * sizes.hidden), (self.pitch, 1)) for n in (sizes.batch, sizes.rows))
        self.packing: list[list[Launch]] = []
        self.launches: list[tuple[Launch, Launch, Launch]] = []
        for k in range(sizes.layers * sizes.directions):
            w_ih, w_hh = packed = [matrix.Packed(params[k * each + n], room) for n in range(2)]
            widths, outs = (
                (sizes.width(k // sizes.directions), sizes.hidden),
                (dparams[k * each], dparams[k * each + 1]),
            )
            made = matrix.product(grads, w_ih, room, adds=k % sizes.directions > 0)
            self.launches.append((matrix.step(grad, w_hh, room), made, matrix.row_sums(grads, widths, outs, room)))
            self.packing.append([one.launch for one in packed])
            for one in packed:
                one.release(room)
        for launch in (launch for one in (*self.packing, *self.launches) for launch in one):
            launch.load()

    def _gathers(self) -> tuple[bool, ...]:
        """Which layers' inputs must be copied first: all but dense float32 matrices with no gaps in time."""
        inputs = [self.call["input"], *(self.call["h"][:: self.sizes.directions][:-1])]
        usable = not self.variable and self.dtype is FLOAT32
        first = usable and not self.call["batchFirst"] and inputs[0].is_contiguous
        return not first, *(not (usable and self.sizes.directions == 1 and h.is_contiguous) for h in inputs[1:])

    def _scatters(self) -> bool:
        out = self.call["dxOut"]
        return self.variable or self.dtype is not FLOAT32 or self.call["batchFirst"] or not out.is_contiguous

    def _state(self, name: str) -> convert.Copy:
        """From a slice of dh or dc to our matrix, or from it to a slice of dhPrev or dcPrev."""
        spec = self.call[name]
        slice_ = TensorSpec(spec.dtype, spec.shape[1:], spec.strides[1:])
        ours = dense(FLOAT32, slice_.shape)
        pair = (ours, slice_) if name.endswith("Out") else (slice_, ours)
        return convert.plan(*pair, self.threads)
