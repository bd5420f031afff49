"""LSTM over whole sequences, layers and directions, backwards.

Forward, one layer and direction, x the input or the states of the layer below, `prev` the step before in its direction:
    i, f, g, o = σ, σ, tanh, σ of x·w_ihᵀ + b_ih + h_prev·w_hhᵀ + b_hh; c = f·c_prev + i·g; h = o·tanhc, tanhc = tanh(c)

Backward, step by step against the direction from dh_next = dh, dc_next = dc:
    dh_t = dy_t + dh_next                        dc_t = dh_t·o·(1 − tanhc²) + dc_next
    di = dc_t·g·i·(1 − i)                        df = dc_t·c_prev·f·(1 − f)
    dg = dc_t·i·(1 − g²)                         do = dh_t·tanhc·o·(1 − o)
    G = [di df dg do]: dh_next = G·w_hh, dc_next = dc_t·f, dx_t = G·w_ih
    dw_ih = Σ Gᵀx, dw_hh = Σ Gᵀh_prev, db_ih = db_hh = Σ G; the last dh_next, dc_next are dhPrev, dcPrev

From the top layer down: dy of a layer is dx of the one above, summed over the directions. With batchSizes, sequence n
takes part in step t when batchSizes[t] > n; elsewhere nothing of it is read, dx is 0, and gradients pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from aclnn.base.device import CPU, DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64, DType
from aclnn.base.float_range import finite_or_unknown
from aclnn.base.format import Format
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec, dense
from aclnn.base.tolerance import Terms
from aclnn.contract.advice import Advice
from aclnn.contract.builders import between, length
from aclnn.contract.call import Call
from aclnn.contract.cases import Case
from aclnn.contract.expr import Above, Attr, Const, Dim, Either, ElementDim, Expr, Formula
from aclnn.contract.model import HIDDEN, Arg, Op, bool_array, flag, number, tensor_in, tensor_list, tensor_out
from aclnn.contract.rows import ALSO, Rows
from aclnn.contract.rules import Descending
from aclnn.contract.stage import Stage
from aclnn.ops.definition import Definition
from aclnn.ops.lstm_time_loop import Backward, BackwardErrors

DIRECTIONS = Either(Attr("bidirectional"), Const(2), Const(1))
LAYERS = DIRECTIONS * Attr("numLayers")  # counted with their directions
PARAMETERS = Either(Attr("hasBias"), Const(4), Const(2)) * LAYERS
STEPS = Either(Attr("batchFirst"), Dim("input", 1), Dim("input", 0))
BATCH = Either(Attr("batchFirst"), Dim("input", 0), Dim("input", 1))
HIDDEN_SIZE = ElementDim("hx", 0, 2)
STATE = (LAYERS, BATCH, HIDDEN_SIZE)
SEQUENCE = (STEPS, BATCH, HIDDEN_SIZE)

FORMATS = ((1, (Format.ND,)), (2, (Format.ND,)), (3, (Format.ND, Format.NCL)))
SAVED = ("i", "g", "f", "o", "h", "c", "tanhc")


def parameter_shapes(call: Call, hidden_size: Expr = HIDDEN_SIZE) -> tuple[tuple[int, ...], ...]:
    """The shape of every element of params."""
    directions, hidden = DIRECTIONS.value(call), hidden_size.value(call)
    biases = ((4 * hidden,), (4 * hidden,)) if call["hasBias"] else ()
    shapes: list[tuple[int, ...]] = []
    for layer in range(call["numLayers"]):
        columns = directions * hidden if layer else call["input"].shape[2]
        shapes += ((4 * hidden, columns), (4 * hidden, hidden), *biases) * directions
    return tuple(shapes)


def shapes_of_parameters(hidden_size: ElementDim) -> Formula:
    return Formula(
        lambda call: parameter_shapes(call, hidden_size),
        reads=("input", hidden_size.name, "hasBias", "numLayers", "bidirectional"),
        en="layer by layer w_ih [4H, I], w_hh [4H, H] and with bias b_ih [4H], b_hh [4H], then the same of the reverse "
        f"direction; H is {hidden_size.text('en')}, I is input.shape[2] and above the first layer H × directions",
        zh="逐层依次为w_ih [4H, I]、w_hh [4H, H]，有偏置时还有b_ih [4H]、b_hh [4H]，然后是反向的同样各项；"
        f"H为{hidden_size.text('zh')}，I为input.shape[2]，第一层以上为H × 方向数",
    )


def _tensor(name: str, **given: Any) -> Arg:
    return tensor_in(name, ranks=(3,), formats=FORMATS, dtype_like="input", **given)


def _list(name: str, en: str, zh: str, domain: str = "normal") -> Arg:
    """One of the seven lists that the forward saved."""
    given = {"en": f"{en}, one [T, B, H] per layer and direction.", "zh": f"{zh}，每层每个方向一个[T, B, H]。"}
    return tensor_list(name, ranks=(3,), formats=FORMATS, dtype_like="input", shape=SEQUENCE, domain=domain, **given)


def rows_of(steps: str, *others: str) -> Rows:
    """input and the outputs laid out like it may be rows, for sequences of variable length."""
    return Rows(("input", *others), steps, "hx", "batchFirst")


def sequences(batch_sizes: str) -> Arg:
    """input, which may be rows where there is an argument of this name."""
    return tensor_in(
        "input",
        ranks=(3,),
        ranks_also=ALSO,
        formats=FORMATS,
        en=f"The input sequences, [T, B, I], or [B, T, I] if batchFirst; with {batch_sizes} also [T·B, I].",
        zh=f"输入序列，[T, B, I]；batchFirst为true时是[B, T, I]；有{batch_sizes}时也可为[T·B, I]。",
    )


def parameters(shapes: Expr, **given: Any) -> Arg:
    return tensor_list(
        "params",
        ranks=(1, 2),
        formats=FORMATS,
        dtype_like="input",
        shape=shapes,
        domain="weight",
        en="Weights and biases, per layer and direction: w_ih, w_hh, then b_ih, b_hh if hasBias; rows i, f, g, o.",
        zh="权重和偏置，每层每个方向依次为w_ih、w_hh，hasBias为true时还有b_ih、b_hh；行按i、f、g、o排布。",
        **given,
    )


def initial_state(shape: tuple[Expr, ...], en: str = ".", zh: str = "。", **given: Any) -> Arg:
    """hx; `en` and `zh` end its description."""
    return tensor_list(
        "hx",
        ranks=(3,),
        formats=FORMATS,
        dtype_like="input",
        shape=shape,
        en=f"The initial state: h0 and c0, [L·D, B, H] each, at index layer·D + direction{en}",
        zh=f"初始状态h0和c0，均为[L·D, B, H]，下标为layer·D + direction{zh}",
        **given,
    )


def batch_sizes(name: str, **given: Any) -> Arg:
    return tensor_in(
        name,
        optional=True,
        default=None,
        dtypes=(INT64,),
        ranks=(1,),
        shape=(STEPS,),
        en="How many sequences take part in each step, [T], not increasing; null: all of them.",
        zh="每个时刻参与计算的序列数，[T]，不递增；为空时全部参与。",
        **given,
    )


HAS_BIAS = flag("hasBias", keyword_only=True, en="Whether params holds biases.", zh="params中是否有偏置。")
NUM_LAYERS = number("numLayers", "int64", keyword_only=True, en="The number of layers, L.", zh="层数L。")
BIDIRECTIONAL = flag(
    "bidirectional",
    keyword_only=True,
    en="Whether there is a reverse direction too: D = 2, else 1.",
    zh="是否双向：D = 2，否则为1。",
)


def _output(name: str, python: str, like: str, **given: Any) -> Arg:
    return tensor_out(name, python=python, ranks=(3,), formats=FORMATS, dtype_like="input", shape=like, **given)


lstm_backward = Op(
    "aclnnLstmBackward",
    family="Lstm",
    header="lstm_backward",
    rows=rows_of("batchSizesOptional", "dy", "dxOut"),
    en="Gradient of an LSTM: of its input, its initial state and its parameters.",
    zh="LSTM的反向计算：输入、初始状态和参数的梯度。",
    args=(
        sequences("batchSizesOptional"),
        initial_state(STATE),
        parameters(shapes_of_parameters(HIDDEN_SIZE)),
        _tensor(
            "dy",
            shape=(Dim("input", 0), Dim("input", 1), DIRECTIONS * HIDDEN_SIZE),
            ranks_also=ALSO,
            en="Gradient of the top layer's output, laid out as input, forward half first.",
            zh="最上层输出的梯度，排布与input一致，前向在前、反向在后。",
        ),
        _tensor("dh", shape=STATE, en="Gradient of the last hidden states.", zh="最后时刻隐藏状态的梯度。"),
        _tensor("dc", shape=STATE, en="Gradient of the last cell states.", zh="最后时刻细胞状态的梯度。"),
        _list("i", "Input gates", "输入门的激活值", "gate"),
        _list("g", "Candidate cell states", "候选细胞状态的激活值", "tanh"),
        _list("f", "Forget gates", "遗忘门的激活值", "gate"),
        _list("o", "Output gates", "输出门的激活值", "gate"),
        _list("h", "Hidden states", "隐藏状态", "tanh"),
        _list("c", "Cell states", "细胞状态"),
        _list("tanhc", "tanh of the cell states, used as given", "细胞状态的tanh，按给定值使用", "tanh"),
        batch_sizes("batchSizesOptional", python="batch_sizes"),
        HAS_BIAS,
        NUM_LAYERS,
        number(
            "dropout",
            "double",
            keyword_only=True,
            default=0.0,
            en="Dropout between layers. It does not change the gradient: the mask is no argument.",
            zh="层间dropout概率。不影响梯度：dropout的掩码不是输入。",
        ),
        flag(
            "train",
            keyword_only=True,
            default=True,
            en="Whether the forward ran in training. It does not change the gradient.",
            zh="正向是否为训练场景。不影响梯度。",
        ),
        BIDIRECTIONAL,
        flag(
            "batchFirst",
            keyword_only=True,
            en="Whether input, dy and dxOut have the batch first.",
            zh="input、dy、dxOut的第一维是否为batch。",
        ),
        bool_array(
            "outputMask",
            python=HIDDEN,
            optional=True,
            en="Four flags, accepted and ignored: every gradient is computed.",
            zh="四个标志，接受但不生效：所有梯度都会计算。",
        ),
        _output("dxOut", "dx", "input", ranks_also=ALSO, en="Gradient of input.", zh="input的梯度。"),
        _output("dhPrevOut", "dh_prev", "dh", en="Gradient of h0.", zh="h0的梯度。"),
        _output("dcPrevOut", "dc_prev", "dc", en="Gradient of c0.", zh="c0的梯度。"),
        tensor_list(
            "dparamsOut",
            python="dparams",
            out=True,
            ranks=(1, 2),
            formats=FORMATS,
            dtype_like="input",
            shape="params",
            en="Gradients of params, in its order.",
            zh="params各项的梯度，顺序相同。",
        ),
    ),
    rules=(
        between("numLayers", 1, stage=Stage.COUNT),
        length("outputMask", 4, stage=Stage.COUNT),
        length("hx", 2),
        length("params", PARAMETERS),
        *(length(name, LAYERS) for name in SAVED),
        length("dparamsOut", PARAMETERS),
        between("dropout", 0, 1),
        Descending(arg="batchSizesOptional", most=BATCH),
    ),
    advice=(
        Advice(
            conditions=(Attr("train"), Above(Attr("dropout"), 0), Above(Attr("numLayers"), 1)),
            en="dropout is {dropout} between {numLayers} layers in training, but the mask that the forward drew is no "
            "argument; the gradient is computed as if nothing had been dropped",
            zh="训练时{numLayers}层之间的dropout是{dropout}，但正向使用的掩码不是输入；梯度按未发生dropout计算",
        ),
    ),
)


def lstm_backward_reference(**given: Any) -> tuple[Array, Array, Array, list[Array]]:
    return Backward(**given).gradients()


def lstm_backward_terms(**given: Any) -> tuple[Terms, Terms, Terms, list[Terms]]:
    dx, dh_prev, dc_prev, dparams = BackwardErrors(**given).gradients()

    def measured(errors: Array) -> Terms:
        return Terms.measured(finite_or_unknown(errors))

    return measured(dx), measured(dh_prev), measured(dc_prev), [measured(error) for error in dparams]


def lstm_backward_case(
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
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    """`lengths`, one per sequence and not increasing, makes the sequences of variable length."""
    directions = 2 if bidirectional else 1

    def tensor(*shape: int) -> TensorSpec:
        return dense(dtype, shape, Format.ND)

    def sequences(features: int) -> TensorSpec:
        return tensor(*((batch, steps) if batch_first else (steps, batch)), features)

    state = tensor(layers * directions, batch, hidden_size)
    values: dict[str, Any] = {"input": sequences(input_size), "hx": (state, state), "params": ()}
    values |= {"dy": sequences(directions * hidden_size), "dh": state, "dc": state}
    values |= dict.fromkeys(SAVED, (tensor(steps, batch, hidden_size),) * (layers * directions))
    values |= {"batchSizesOptional": None if lengths is None else dense(INT64, (steps,), Format.ND)}
    values |= {"hasBias": has_bias, "numLayers": layers, "dropout": dropout, "train": train}
    values |= {"bidirectional": bidirectional, "batchFirst": batch_first, "outputMask": None}
    params = tuple(tensor(*shape) for shape in parameter_shapes(Call(values, device)))
    values |= {"params": params, "dxOut": values["input"], "dhPrevOut": state, "dcPrevOut": state, "dparamsOut": params}
    data = {} if lengths is None else {"batchSizesOptional": batch_sizes_of(lengths, steps, batch)}
    return Case(lstm_backward, values, device, data=data)


def batch_sizes_of(lengths: Sequence[int], steps: int, batch: int) -> Array:
    """How many sequences take part in each step."""
    if len(lengths) != batch or any(a < b for a, b in pairwise((steps, *lengths, 0))):
        raise ValueError(f"lengths is {list(lengths)}; it must be {batch} numbers in 0..{steps} that do not increase")
    return np.array([sum(n > t for n in lengths) for t in range(steps)], np.int64)


def lstm_backward_cases() -> Iterator[Case]:
    make = lstm_backward_case
    full = make(2, 2, 3, 2, lengths=(2, 1)).but("everything given", outputMask=(True, True, True, True))
    yield full
    yield from shared_cases(make)
    yield make(3, 2, dtype=FLOAT16).but("outputMask is ignored", outputMask=(False, False, False, False))
    yield from _strided_cases(make(3, 2, 4, 2))
    yield full.but("reversed batchSizesOptional", batchSizesOptional=TensorSpec(INT64, (2,), (-2,), 3, Format.ND, 4))


def shared_cases(make: Callable[..., Case]) -> Iterator[Case]:
    """What both directions are tried on; `make` makes the cases of one of them."""
    yield make(3, 2, 4, 3, layers=2, bidirectional=True)
    yield make(3, 2, 4, 3, layers=2, bidirectional=True, has_bias=False, batch_first=True, dtype=FLOAT16)
    yield make(4, 3, 2, 3, layers=3, batch_first=True, dropout=0.5, train=False)
    yield make(2, 1, 1, 1, dropout=1.0)
    for dtype in (BFLOAT16, FLOAT64, FLOAT16):
        yield make(3, 2, 2, 3, layers=2, bidirectional=True, dtype=dtype, device=CPU)
    for lengths in ((4, 4, 2, 1), (3, 1, 0, 0), (0, 0, 0, 0)):
        yield make(4, 4, 3, 2, 2, True, lengths=lengths)
        yield make(4, 4, 3, 2, 1, batch_first=True, lengths=lengths, dtype=FLOAT16)
    for steps, batch, input_size, hidden_size in ((0, 2, 3, 2), (2, 0, 3, 2), (2, 2, 0, 2), (2, 2, 3, 0), (0, 2, 3, 0)):
        yield make(steps, batch, input_size, hidden_size, layers=2, bidirectional=True)


def view(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, storage: int) -> TensorSpec:
    return TensorSpec(FLOAT32, shape, strides, offset, Format.ND, storage)


def _strided_cases(plain: Case) -> Iterator[Case]:
    w_ih, w_hh, b_ih, b_hh = plain.values["params"]
    backwards = view((3, 2, 4), (-8, 4, -1), 19, 24)
    yield plain.but("reversed input of format NCL", input=backwards._replace(format=Format.NCL))
    yield plain.seen("broadcast dy", dy=((0, 0, 1), 3, 9))
    yield plain.seen("broadcast dh", dh=((9, 0, 0), 1, 2))
    yield plain.seen("transposed dc", dc=((4, 1, 2), 0, 4))
    yield plain.but("transposed i", i=(view((3, 2, 2), (1, 3, 6), 0, 12),))
    yield plain.but("transposed w_ih", params=(view((8, 4), (1, 8), 0, 32), w_hh, b_ih, b_hh))
    yield plain.seen("transposed dxOut", dxOut=((2, 1, 7), 5, 40))
    yield plain.seen("reversed dhPrevOut", dhPrevOut=((4, -2, -1), 3, 4))
    yield plain.seen("spread dcPrevOut", dcPrevOut=((0, 6, 3), 1, 12))
    reversed_bias = view((8,), (-2,), 15, 16)
    yield plain.but("strided dparamsOut", dparamsOut=(w_ih, view((8, 2), (1, 9), 0, 20), reversed_bias, b_hh))


OPERATORS = (
    Definition(lstm_backward, lstm_backward_reference, lstm_backward_terms, lstm_backward_case, lstm_backward_cases),
)
