"""The LSTM cell after its matrix products, forwards and backwards.

Forward   a = inputGates + hiddenGates + both biases, in four blocks; i, f, o = σ(a_i), σ(a_f), σ(a_o); g = tanh(a_g)
          cy = f·cx + i·g; hy = o·tanh(cy); storage = [i f g o]

Backward  T = tanh(cy); dc = gradHy·o·(1 − T²) + gradC; gradCx = dc·f
          da_i = dc·g·i·(1 − i); da_f = dc·cx·f·(1 − f); da_g = dc·i·(1 − g²); da_o = gradHy·T·o·(1 − o)
          gradGates = [da_i da_f da_g da_o]; gradBias = Σ gradGates over the batch

The biases are both there or both absent. A null gradient enters the formulas as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.base.device import CPU, DEFAULT, Device
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.float_range import TINIEST, Size, beyond_range, nearest_zero, passed_on, product_total, sum_total
from aclnn.base.format import Format
from aclnn.base.geometry import Array
from aclnn.base.sums import sum_rows
from aclnn.base.tensor import dense
from aclnn.base.tolerance import Terms
from aclnn.contract.builders import all_or_none
from aclnn.contract.cases import Case
from aclnn.contract.expr import Attr, Const, Dim
from aclnn.contract.model import Arg, Op, flag, tensor_in, tensor_out
from aclnn.ops.definition import Definition

GATE_COLUMNS = Const(4) * Dim("cx", 1)
STATE: dict[str, Any] = {"ranks": (2,), "shape": "cx", "dtype_like": "cx"}  # [B, H]
GATES: dict[str, Any] = {"ranks": (2,), "shape": (Dim("cx", 0), GATE_COLUMNS), "dtype_like": "cx"}  # [B, 4H]
BIAS: dict[str, Any] = {"ranks": (1,), "shape": (GATE_COLUMNS,), "dtype_like": "cx"}  # [4H]
OLD_STATE = tensor_in("cx", ranks=(2,), en="The old cell state, [B, H].", zh="旧细胞状态，[B, H]。")

thnn_fused_lstm_cell_backward = Op(
    "aclnnThnnFusedLstmCellBackward",
    family="ThnnFusedLstmCell",
    header="thnn_fused_lstm_cell_backward",
    en="Gradient of the LSTM cell behind its matrix products: of the four gates, the cell state and the bias.",
    zh="LSTMCell中矩阵乘之后部分的反向计算：四个门、细胞状态和偏置的梯度。",
    args=(
        tensor_in(
            "gradHyOptional",
            python="grad_hy",
            optional=True,
            **STATE,
            en="Gradient of the hidden state hy, [B, H]; null is zeros.",
            zh="隐藏状态hy的梯度，[B, H]；为空时按0计算。",
        ),
        tensor_in(
            "gradCOptional",
            python="grad_cy",
            optional=True,
            **STATE,
            en="Gradient of the new cell state cy, [B, H]; null is zeros.",
            zh="新细胞状态cy的梯度，[B, H]；为空时按0计算。",
        ),
        OLD_STATE,
        tensor_in("cy", **STATE, en="The new cell state, [B, H].", zh="新细胞状态，[B, H]。"),
        tensor_in(
            "storage",
            **GATES,
            domain="gate",
            en="The activated gates i, f, g, o side by side, [B, 4H].",
            zh="激活后的四个门i、f、g、o，按列依次排布，[B, 4H]。",
        ),
        flag(
            "hasBias",
            en="Whether gradBiasOut is computed; if not it may be null and is never written.",
            zh="是否计算gradBiasOut；为false时它可为空，且不会被写入。",
        ),
        tensor_out(
            "gradGatesOut",
            python="grad_gates",
            ranks=(2,),
            shape="storage",
            dtype_like="cx",
            en="Gradient of the gates before activation, [B, 4H].",
            zh="四个门激活前的梯度，[B, 4H]。",
        ),
        tensor_out(
            "gradCxOut",
            python="grad_cx",
            **STATE,
            en="Gradient of the old cell state, [B, H].",
            zh="旧细胞状态的梯度，[B, H]。",
        ),
        tensor_out(
            "gradBiasOut",
            python="grad_bias",
            **BIAS,
            when=Attr("hasBias"),
            en="Gradient of the bias, [4H].",
            zh="偏置的梯度，[4H]。",
        ),
    ),
)


def cell_gradients(
    grad_h: Array, grad_c: Array, c_prev: Array, gates: Sequence[Array], tanh_c: Array
) -> tuple[Array, Array]:
    """One step backwards: the gradients of the gates before activation, side by side, and of the cell state before."""
    i, f, g, o = gates
    dc = grad_h * o * (1 - tanh_c**2) + grad_c
    di = dc * (g * i * (1 - i))
    df = dc * (c_prev * f * (1 - f))
    dg = dc * i * (1 - g**2)
    do = grad_h * (tanh_c * o * (1 - o))
    return np.concatenate([di, df, dg, do], axis=-1), dc * f


def cell_gradient_totals(
    grad_h: Array, grad_c: Array, c_prev: Array, gates: Sequence[Array], tanh_c: Array
) -> tuple[Array, Array]:
    """Σ|terms| behind those gradients: every factor enters without its sign, and 1 − x², which cancels, as 1 + x²."""
    i, f, g, o = gates
    slope_c, slope_g = (Size.computed(1 - x**2, 1 + x**2) for x in (tanh_c, g))
    made = product_total(Size.of(grad_h), Size.of(o), slope_c)
    dc = Size.computed(grad_h * o * (1 - tanh_c**2) + grad_c, made + np.abs(grad_c))
    products = [
        (dc, Size.of(g), Size.of(i), Size.of(1 - i)),
        (dc, Size.of(c_prev), Size.of(f), Size.of(1 - f)),
        (dc, Size.of(i), slope_g),
        (Size.of(grad_h), Size.of(tanh_c), Size.of(o), Size.of(1 - o)),
    ]
    return np.concatenate([product_total(*p) for p in products], axis=-1), product_total(dc, Size.of(f))


def thnn_fused_lstm_cell_backward_reference(
    grad_hy: Array | None, grad_cy: Array | None, cx: Array, cy: Array, storage: Array, has_bias: bool
) -> tuple[Array, Array, Array | None]:
    c_prev, tanh_c, gates = _wide(cx), np.tanh(_wide(cy)), np.split(_wide(storage), 4, axis=1)
    grad_gates, grad_cx = cell_gradients(_wide(grad_hy), _wide(grad_cy), c_prev, gates, tanh_c)
    return grad_gates, grad_cx, sum_rows(grad_gates) if has_bias else None


def thnn_fused_lstm_cell_backward_terms(
    grad_hy: Array | None, grad_cy: Array | None, cx: Array, cy: Array, storage: Array, has_bias: bool
) -> tuple[Terms, Terms, Terms]:
    """A gate is a product behind the sum dc; the bias adds up the batch."""
    c_prev, tanh_c, gates = _wide(cx), np.tanh(_wide(cy)), np.split(_wide(storage), 4, axis=1)
    grad_gates, grad_cx = cell_gradient_totals(_wide(grad_hy), _wide(grad_cy), c_prev, gates, tanh_c)
    return Terms(grad_gates, (2, 1)), Terms(grad_cx, (2, 1)), Terms(sum_total(grad_gates), (2, 1, len(cx)))


def _wide(array: Array | None) -> Array:
    return np.zeros(()) if array is None else array.astype(np.float64)


def thnn_fused_lstm_cell_backward_case(
    batch: int = 3,
    hidden_size: int = 4,
    has_bias: bool = True,
    has_grad_hy: bool = True,
    has_grad_cy: bool = True,
    dtype: DType = FLOAT32,
    device: Device = DEFAULT,
) -> Case:
    state = dense(dtype, (batch, hidden_size), Format.ND)
    gates = dense(dtype, (batch, 4 * hidden_size), Format.ND)
    values = {
        "gradHyOptional": state if has_grad_hy else None,
        "gradCOptional": state if has_grad_cy else None,
        "cx": state,
        "cy": state,
        "storage": gates,
        "hasBias": has_bias,
        "gradGatesOut": gates,
        "gradCxOut": state,
        "gradBiasOut": dense(dtype, (4 * hidden_size,), Format.ND) if has_bias else None,
    }
    return Case(thnn_fused_lstm_cell_backward, values, device)


def thnn_fused_lstm_cell_backward_cases() -> Iterator[Case]:
    make = thnn_fused_lstm_cell_backward_case
    plain = make()
    yield plain
    yield from _shared_cases(make)
    yield make(300, 2, dtype=FLOAT16)
    for has_grad_hy, has_grad_cy in ((False, True), (True, False), (False, False)):
        yield make(2, 3, True, has_grad_hy, has_grad_cy)
    yield plain.but("gradBiasOut given but not asked for", hasBias=False)
    yield plain.but("gradBiasOut of any kind when not asked for", hasBias=False, gradBiasOut=dense(FLOAT64, (2, 2)))
    yield plain.seen("broadcast gradHyOptional", gradHyOptional=((0, 1), 2, 9))
    yield plain.seen("reversed storage", storage=((-16, -1), 47, 48))
    yield plain.seen("transposed cx", cx=((1, 3), 0, 12))
    yield plain.seen("transposed gradGatesOut", gradGatesOut=((1, 4), 1, 70))
    yield plain.seen("reversed gradBiasOut", gradBiasOut=((-2,), 31, 40))
    yield plain.seen("spread gradCxOut", gradCxOut=((10, 2), 3, 40))


def _shared_cases(make: Callable[..., Case]) -> Iterator[Case]:
    """What both directions are tried on; `make` makes the cases of one of them."""
    yield make(5, 3, dtype=FLOAT16)
    yield make(has_bias=False)
    for dtype in (FLOAT32, BFLOAT16, FLOAT64):
        yield make(4, 5, dtype=dtype, device=CPU)
    for batch, hidden_size in ((0, 3), (3, 0), (0, 0), (1, 1)):
        yield make(batch, hidden_size)


def _bias(name: str, python: str, **given: Any) -> Arg:
    return tensor_in(name, python=python, optional=True, default=None, **BIAS, **given)


thnn_fused_lstm_cell = Op(
    "aclnnThnnFusedLstmCell",
    family="ThnnFusedLstmCell",
    header="thnn_fused_lstm_cell",
    en="The LSTM cell behind its matrix products: new states, and the activated gates for the backward.",
    zh="LSTMCell中矩阵乘之后的部分：新的状态，以及供反向使用的激活后的门。",
    args=(
        tensor_in(
            "inputGates", **GATES, en="x·w_ihᵀ, [B, 4H], columns i, f, g, o.", zh="x·w_ihᵀ，[B, 4H]，按i、f、g、o排布。"
        ),
        tensor_in("hiddenGates", **GATES, en="h·w_hhᵀ, [B, 4H].", zh="h·w_hhᵀ，[B, 4H]。"),
        OLD_STATE,
        _bias("inputBiasOptional", "input_bias", en="b_ih, [4H].", zh="b_ih，[4H]。"),
        _bias("hiddenBiasOptional", "hidden_bias", en="b_hh, [4H].", zh="b_hh，[4H]。"),
        tensor_out("hyOut", python="hy", **STATE, en="The new hidden state, [B, H].", zh="新隐藏状态，[B, H]。"),
        tensor_out("cyOut", python="cy", **STATE, en="The new cell state, [B, H].", zh="新细胞状态，[B, H]。"),
        tensor_out(
            "storageOut",
            python="storage",
            ranks=(2,),
            shape="inputGates",
            dtype_like="cx",
            en="The activated gates i, f, g, o side by side, [B, 4H].",
            zh="激活后的四个门i、f、g、o，按列依次排布，[B, 4H]。",
        ),
    ),
    rules=(all_or_none("inputBiasOptional", "hiddenBiasOptional"),),
)


def cell_states(a: Array, c_prev: Array) -> tuple[list[Array], Array, Array]:
    """One step forwards from the gates before activation: the gates i, f, g, o, the cell state and its tanh."""
    a_i, a_f, a_g, a_o = np.split(a, 4, axis=-1)
    i, f, g, o = sigmoid(a_i), sigmoid(a_f), np.tanh(a_g), sigmoid(a_o)
    c = f * c_prev + i * g
    return [i, f, g, o], c, np.tanh(c)


def sigmoid(a: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-a)))


def cell_state_totals(a: Array, a_total: Array, c_prev: Array, c_prev_total: Array) -> dict[str, Array]:
    """Σ|terms| behind the gates i, f, g, o, the cell state c, its tanh and the hidden state h.

    An activation passes on the rounding of its argument, times its slope, and adds its own.
    """
    (i, f, g, o), c, tanh_c = cell_states(a, c_prev)
    a_i, a_f, a_g, a_o = np.split(nearest_zero(a, a_total), 4, axis=-1)
    t_i, t_f, t_g, t_o = np.split(a_total, 4, axis=-1)
    t_i, t_f, t_o = (
        passed_on(sigmoid_slope(near), total) + gate + _VANISHED
        for near, total, gate in ((a_i, t_i, i), (a_f, t_f, f), (a_o, t_o, o))
    )
    t_g = passed_on(tanh_slope(a_g), t_g) + np.abs(g)
    t_c = t_f * np.abs(c_prev) + f * c_prev_total + t_i * np.abs(g) + i * t_g
    t_c = t_c + beyond_range(Size.computed(f, t_f), Size.computed(c_prev, c_prev_total))
    t_tanh = passed_on(tanh_slope(nearest_zero(c, t_c)), t_c) + np.abs(tanh_c)
    t_h = t_o * np.abs(tanh_c) + o * t_tanh + TINIEST
    return {"i": t_i, "f": t_f, "g": t_g, "o": t_o, "c": t_c, "tanhc": t_tanh, "h": t_h}


_VANISHED = 2.0**-104
"""1 / (1 + exp(−a)) is 0 in float32 below a = −88.7, where exp overflows and the sigmoid is still u times this."""


def sigmoid_slope(a: Array) -> Array:
    return sigmoid(a) * sigmoid(-a)


def tanh_slope(a: Array) -> Array:
    return np.asarray(1 - np.tanh(a) ** 2)


def thnn_fused_lstm_cell_reference(
    input_gates: Array, hidden_gates: Array, cx: Array, input_bias: Array | None, hidden_bias: Array | None
) -> tuple[Array, Array, Array]:
    a = _wide(input_gates) + _wide(hidden_gates) + _wide(input_bias) + _wide(hidden_bias)
    gates, cy, tanh_c = cell_states(a, _wide(cx))
    return gates[3] * tanh_c, cy, np.concatenate(gates, axis=1)


def thnn_fused_lstm_cell_terms(
    input_gates: Array, hidden_gates: Array, cx: Array, input_bias: Array | None, hidden_bias: Array | None
) -> tuple[Terms, Terms, Terms]:
    parts = np.stack(np.broadcast_arrays(*map(_wide, (input_gates, hidden_gates, input_bias, hidden_bias))))
    totals = cell_state_totals(sum(parts), sum_total(np.abs(parts)), _wide(cx), np.abs(_wide(cx)))
    gates = np.concatenate([totals[gate] for gate in "ifgo"], axis=1)
    return Terms(totals["h"], (4, 2, 1)), Terms(totals["c"], (4, 2)), Terms(gates, (4,))


def thnn_fused_lstm_cell_case(
    batch: int = 3, hidden_size: int = 4, has_bias: bool = True, dtype: DType = FLOAT32, device: Device = DEFAULT
) -> Case:
    state = dense(dtype, (batch, hidden_size), Format.ND)
    gates = dense(dtype, (batch, 4 * hidden_size), Format.ND)
    bias = dense(dtype, (4 * hidden_size,), Format.ND) if has_bias else None
    values = {"inputGates": gates, "hiddenGates": gates, "cx": state, "inputBiasOptional": bias}
    values |= {"hiddenBiasOptional": bias, "hyOut": state, "cyOut": state, "storageOut": gates}
    return Case(thnn_fused_lstm_cell, values, device)


def thnn_fused_lstm_cell_cases() -> Iterator[Case]:
    plain = thnn_fused_lstm_cell_case()
    yield plain
    yield from _shared_cases(thnn_fused_lstm_cell_case)
    yield plain.seen("broadcast inputGates", inputGates=((0, 1), 2, 20))
    yield plain.seen("reversed hiddenGates", hiddenGates=((-16, -1), 47, 48))
    yield plain.seen("transposed cx", cx=((1, 3), 0, 12))
    yield plain.seen("spread inputBiasOptional", inputBiasOptional=((2,), 1, 40))
    yield plain.seen("spread hyOut", hyOut=((10, 2), 3, 40))
    yield plain.seen("transposed cyOut", cyOut=((1, 3), 0, 12))
    yield plain.seen("transposed storageOut", storageOut=((1, 4), 1, 70))


OPERATORS = (
    Definition(
        thnn_fused_lstm_cell_backward,
        thnn_fused_lstm_cell_backward_reference,
        thnn_fused_lstm_cell_backward_terms,
        thnn_fused_lstm_cell_backward_case,
        thnn_fused_lstm_cell_backward_cases,
    ),
    Definition(
        thnn_fused_lstm_cell,
        thnn_fused_lstm_cell_reference,
        thnn_fused_lstm_cell_terms,
        thnn_fused_lstm_cell_case,
        thnn_fused_lstm_cell_cases,
    ),
)
