"""LSTM over whole sequences, layers and directions, forwards, with the seven lists that its backward reads.

One layer and direction, x the input or the states of the layer below, both directions side by side:
    i, f, g, o = σ, σ, tanh, σ of x_t·w_ihᵀ + b_ih + h_prev·w_hhᵀ + b_hh
    c_t = f·c_prev + i·g; tanhc_t = tanh(c_t); h_t = o·tanhc_t
`prev` is the step before in the direction, at its start the initial state (zeros if hx is null). output is h of the top
layer; hy and cy are the last states. With batchSizes, sequence n takes part in step t when batchSizes[t] > n: elsewhere
its input is not read, output and the lists are 0, and its state passes unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from aclnn.base.device import CPU, DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.float_range import finite_or_unknown
from aclnn.base.format import Format
from aclnn.base.geometry import Array
from aclnn.base.tolerance import Terms
from aclnn.contract.builders import between, when
from aclnn.contract.cases import Case
from aclnn.contract.expr import Above, Attr, Const, Dim, ElementDim
from aclnn.contract.model import Arg, Op, flag, number, tensor_list, tensor_out
from aclnn.contract.rows import ALSO
from aclnn.contract.rules import Descending
from aclnn.contract.stage import Stage
from aclnn.ops.definition import Definition
from aclnn.ops.lstm import (
    BATCH,
    BIDIRECTIONAL,
    DIRECTIONS,
    FORMATS,
    HAS_BIAS,
    LAYERS,
    NUM_LAYERS,
    PARAMETERS,
    SAVED,
    STEPS,
    batch_sizes,
    initial_state,
    lstm_backward_case,
    parameters,
    rows_of,
    sequences,
    shapes_of_parameters,
    shared_cases,
    view,
)
from aclnn.ops.lstm_cell import cell_state_totals, cell_states
from aclnn.ops.lstm_time_loop import LstmLoop, States

HIDDEN_SIZE = ElementDim("params", 1, -1)  # w_hh is [4H, H]
STATE = (LAYERS, BATCH, HIDDEN_SIZE)


def _output(name: str, **given: Any) -> Arg:
    return tensor_out(name, ranks=(3,), formats=FORMATS, dtype_like="input", **given)


def _saved(name: str, python: str, en: str, zh: str) -> Arg:
    """One of the seven lists for the backward."""
    return tensor_list(
        name,
        python=python,
        out=True,
        when=Attr("train"),
        count=LAYERS,
        ranks=(3,),
        formats=FORMATS,
        dtype_like="input",
        shape=(STEPS, BATCH, HIDDEN_SIZE),
        en=f"{en}, one [T, B, H] per layer and direction; written when train.",
        zh=f"{zh}，每层每个方向一个[T, B, H]；train为true时写入。",
    )


lstm = Op(
    "aclnnLSTM",
    family="Lstm",
    header="lstm",
    rows=rows_of("batchSizes", "output"),
    en="An LSTM over whole sequences, with what its backward needs.",
    zh="对整个序列计算LSTM，并保存反向所需的中间结果。",
    args=(
        sequences("batchSizes"),
        parameters(shapes_of_parameters(HIDDEN_SIZE), count=PARAMETERS),
        initial_state(STATE, "; null is zeros.", "；为空时按0计算。", optional=True, default=None, count=Const(2)),
        batch_sizes("batchSizes"),
        HAS_BIAS,
        NUM_LAYERS,
        number(
            "dropout",
            "double",
            keyword_only=True,
            default=0.0,
            en="Dropout between layers; in training it must be 0, since the backward could not undo it.",
            zh="层间dropout概率；训练时多层之间必须为0，因为反向无法还原掩码。",
        ),
        flag(
            "train",
            keyword_only=True,
            default=True,
            en="Whether the seven lists are written.",
            zh="是否写入供反向使用的七个列表。",
        ),
        BIDIRECTIONAL,
        flag(
            "batchFirst",
            keyword_only=True,
            en="Whether input and output have the batch first.",
            zh="input、output的第一维是否为batch。",
        ),
        _output(
            "output",
            shape=(Dim("input", 0), Dim("input", 1), DIRECTIONS * HIDDEN_SIZE),
            ranks_also=ALSO,
            en="The hidden states of the top layer, laid out as input, forward half first.",
            zh="最上层各时刻的隐藏状态，排布与input一致，前向在前、反向在后。",
        ),
        _output("hy", shape=STATE, en="The last hidden states.", zh="最后时刻的隐藏状态。"),
        _output("cy", shape=STATE, en="The last cell states.", zh="最后时刻的细胞状态。"),
        _saved("iOut", "i", "Input gates", "输入门的激活值"),
        _saved("jOut", "g", "Candidate cell states", "候选细胞状态的激活值"),
        _saved("fOut", "f", "Forget gates", "遗忘门的激活值"),
        _saved("oOut", "o", "Output gates", "输出门的激活值"),
        _saved("hOut", "h", "Hidden states", "隐藏状态"),
        _saved("cOut", "c", "Cell states", "细胞状态"),
        _saved("tanhCOut", "tanhc", "tanh of the cell states", "细胞状态的tanh"),
    ),
    rules=(
        between("numLayers", 1, stage=Stage.COUNT),
        between("dropout", 0, 1),
        when("train", when(Above(Attr("numLayers"), 1), between("dropout", 0, 0))),
        Descending(arg="batchSizes", most=BATCH),
    ),
)


def lstm_reference(**given: Any) -> tuple[Any, ...]:
    return _ForwardLoop(**given).results()


def lstm_terms(**given: Any) -> tuple[Any, ...]:
    return _ForwardLoop(**given).terms()


class _ForwardLoop(LstmLoop):
    """The results of a call; h[k] and c[k] are the state that the loop has reached."""

    def __init__(self, **given: Any):
        self.batch_first, self.train = given["batch_first"], given["train"]
        x, params = self.batch_as_told(given["input"]), given["params"]
        super().__init__(x.shape[:2], given["batch_sizes"], params, given["num_layers"], 1 + given["bidirectional"])
        self.x = self.read(x)
        nothing = np.zeros((len(self.params), x.shape[1], params[1].shape[1]))
        self.hx = [nothing, nothing] if given["hx"] is None else [s.astype(np.float64) for s in given["hx"]]
        self.h, self.c = (state.copy() for state in self.hx)

    def batch_as_told(self, array: Array) -> Array:
        return array.swapaxes(0, 1) if self.batch_first else array

    def results(self) -> tuple[Any, ...]:
        saved, output = self.upwards(self.x, self.one_direction)
        lists = ([states[name] for states in saved] if self.train else None for name in SAVED)
        return self.batch_as_told(output), self.h, self.c, *lists

    def one_direction(self, k: int, x: Array) -> States:
        """The states of every step, and "a", the gates before activation."""
        w_ih, w_hh, *biases = self.params[k]
        a = x @ w_ih.T + sum(biases)

        def cell(t: int, h: Array, c: Array) -> States:
            before = a[t] + h @ w_hh.T
            (i, f, g, o), new, tanhc = cell_states(before, c)
            return {"i": i, "g": g, "f": f, "o": o, "h": o * tanhc, "c": new, "tanhc": tanhc, "a": before}

        kept = {name: np.zeros((*x.shape[:2], w_hh.shape[1])) for name in SAVED} | {"a": np.zeros(a.shape)}
        self.h[k], self.c[k] = self.along(k, cell, kept, self.h[k], self.c[k])
        return kept

    def terms(self) -> tuple[Any, ...]:
        """Every step adds up x·w_ih and h·w_hh behind all steps and layers before it."""
        saved, _ = self.upwards(self.x, self.one_direction)
        self.h, self.c = (np.abs(state) for state in self.hx)
        totals, output = self.upwards(np.abs(self.x), lambda k, x: self.totals_of_one_direction(k, x, saved[k]))
        longest = max(w_ih.shape[1] + w_hh.shape[1] for w_ih, w_hh, *_ in self.params)

        def chained(total: Array, k: int) -> Terms:
            return Terms(total, [longest + 2, 1, 1] * (len(self.x) * (1 + k // self.directions)))

        last = len(saved) - 1
        lists = ([chained(t[name], k) for k, t in enumerate(totals)] for name in SAVED)
        return chained(self.batch_as_told(output), last), chained(self.h, last), chained(self.c, last), *lists

    def totals_of_one_direction(self, k: int, x: Array, states: States) -> States:
        """Σ|terms| behind the states of one direction."""
        w_ih, w_hh, *biases = map(np.abs, self.params[k])
        a, c_prev = x @ w_ih.T + sum(biases), self.before(k, states["c"], self.hx[1][k])

        def cell(t: int, h: Array, c: Array) -> States:
            return cell_state_totals(states["a"][t], finite_or_unknown(a[t] + h @ w_hh.T), c_prev[t], c)

        kept = {name: np.zeros_like(states[name]) for name in SAVED}
        self.h[k], self.c[k] = self.along(k, cell, kept, self.h[k], self.c[k])
        return kept


def lstm_case(
    steps: int = 3,
    batch: int = 2,
    input_size: int = 3,
    hidden_size: int = 2,
    layers: int = 1,
    bidirectional: bool = False,
    has_bias: bool = True,
    batch_first: bool = False,
    lengths: tuple[int, ...] | None = None,
    dropout: float = 0.0,
    train: bool = True,
    has_hx: bool = True,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    """`lengths`, one per sequence and not increasing, makes the sequences of variable length."""
    sizes = (steps, batch, input_size, hidden_size, layers, bidirectional, has_bias, batch_first, lengths)
    made = lstm_backward_case(*sizes, dropout, train, dtype, device)
    back: Mapping[str, Any] = made.values
    same = ("input", "params", "hasBias", "numLayers", "dropout", "train", "bidirectional", "batchFirst")
    values = {name: back[name] for name in same}
    values |= {"hx": back["hx"] if has_hx else None, "batchSizes": back["batchSizesOptional"]}
    values |= {"output": back["dy"], "hy": back["dh"], "cy": back["dc"]}
    lists = [arg.name for arg in lstm.outputs if arg.kind == "tensor_list"]
    values |= dict.fromkeys(lists, back["i"] if train else None)
    data = {} if lengths is None else {"batchSizes": made.data["batchSizesOptional"]}
    return Case(lstm, values, device, data=data)


def lstm_cases() -> Iterator[Case]:
    full = lstm_case(2, 2, 3, 2, lengths=(2, 1))
    yield full
    yield full.but("lists given but not asked for", train=False)
    yield from shared_cases(lstm_case)
    for dtype in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64):
        yield lstm_case(3, 2, 2, 3, layers=2, bidirectional=True, has_hx=False, dtype=dtype, device=CPU)
    plain = lstm_case(3, 2, 4, 2)
    _, *rest = plain.values["params"]
    backwards = view((3, 2, 4), (-8, 4, -1), 19, 24)
    yield plain.but("reversed input of format NCL", input=backwards._replace(format=Format.NCL))
    yield plain.but("transposed w_ih", params=(view((8, 4), (1, 8), 0, 32), *rest))
    yield plain.but("broadcast h0", hx=(view((1, 2, 2), (9, 0, 0), 1, 2), plain.values["hx"][1]))
    yield plain.seen("transposed output", output=((2, 1, 7), 5, 40))
    yield plain.seen("reversed hy", hy=((4, -2, -1), 3, 4))
    yield plain.but("transposed iOut", iOut=(view((3, 2, 2), (1, 3, 6), 0, 12),))


OPERATORS = (Definition(lstm, lstm_reference, lstm_terms, lstm_case, lstm_cases),)
