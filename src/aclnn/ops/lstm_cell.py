"""The LSTM cell after its matrix products, backwards.

Forward   i, f, o = σ(a_i), σ(a_f), σ(a_o); g = tanh(a_g); cy = f·cx + i·g; hy = o·tanh(cy)

Backward  T = tanh(cy); dc = gradHy·o·(1 − T²) + gradC; gradCx = dc·f
          da_i = dc·g·i·(1 − i); da_f = dc·cx·f·(1 − f); da_g = dc·i·(1 − g²); da_o = gradHy·T·o·(1 − o)
          gradGates = [da_i da_f da_g da_o]; gradBias = Σ gradGates over the batch

`storage` holds i, f, g, o side by side, already activated. A null gradient enters the formulas as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.format import Format
from aclnn.base.geometry import Array
from aclnn.base.product import CPU, DEFAULT, Product
from aclnn.base.sums import sum_rows
from aclnn.base.tensor import TensorSpec, dense
from aclnn.base.tolerance import Terms
from aclnn.contract.cases import Case
from aclnn.contract.expr import Attr, Const, Dim
from aclnn.contract.model import Op, flag, tensor_in, tensor_out

GATE_COLUMNS = Const(4) * Dim("cx", 1)

thnn_fused_lstm_cell_backward = Op(
    "aclnnThnnFusedLstmCellBackward",
    family="ThnnFusedLstmCell",
    header="thnn_fused_lstm_cell_backward",
    pairs_with="aclnnThnnFusedLstmCell",
    en="Gradient of the LSTM cell behind its matrix products: of the four gates, the cell state and the bias.",
    zh="LSTMCell中矩阵乘之后部分的反向计算：四个门、细胞状态和偏置的梯度。",
    torch="thnn_fused_lstm_cell_backward(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor storage, "
    "bool has_bias) -> (Tensor, Tensor, Tensor?)",
    args=(
        tensor_in(
            "gradHyOptional",
            python="grad_hy",
            optional=True,
            ranks=(2,),
            shape="cx",
            dtype_like="cx",
            en="Gradient of the hidden state hy, [B, H]; null is zeros.",
            zh="隐藏状态hy的梯度，[B, H]；为空时按0计算。",
        ),
        tensor_in(
            "gradCOptional",
            python="grad_cy",
            optional=True,
            ranks=(2,),
            shape="cx",
            dtype_like="cx",
            en="Gradient of the new cell state cy, [B, H]; null is zeros.",
            zh="新细胞状态cy的梯度，[B, H]；为空时按0计算。",
        ),
        tensor_in("cx", ranks=(2,), en="The old cell state, [B, H].", zh="旧细胞状态，[B, H]。"),
        tensor_in(
            "cy",
            ranks=(2,),
            shape="cx",
            dtype_like="cx",
            en="The new cell state, [B, H].",
            zh="新细胞状态，[B, H]。",
        ),
        tensor_in(
            "storage",
            ranks=(2,),
            shape=(Dim("cx", 0), GATE_COLUMNS),
            dtype_like="cx",
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
            ranks=(2,),
            shape="cx",
            dtype_like="cx",
            en="Gradient of the old cell state, [B, H].",
            zh="旧细胞状态的梯度，[B, H]。",
        ),
        tensor_out(
            "gradBiasOut",
            python="grad_bias",
            ranks=(1,),
            shape=(GATE_COLUMNS,),
            dtype_like="cx",
            when=Attr("hasBias"),
            en="Gradient of the bias, [4H].",
            zh="偏置的梯度，[4H]。",
        ),
    ),
)


def cell_gradients(
    grad_h: Array, grad_c: Array, c_prev: Array, gates: Sequence[Array], tanh_c: Array, absolute: bool = False
) -> tuple[Array, Array]:
    """One step backwards: the gradients of the gates before activation, side by side, and of the cell state before.

    With `absolute`, grad_h and grad_c are sums of absolute values and so are the results: every factor enters
    without its sign, and 1 − x², which cancels, as 1 + x².
    """
    i, f, g, o = gates
    size = np.abs if absolute else np.positive
    sign = 1 if absolute else -1
    dc = grad_h * size(o) * (1 + sign * tanh_c**2) + grad_c
    di = dc * size(g * i * (1 - i))
    df = dc * size(c_prev * f * (1 - f))
    dg = dc * size(i) * (1 + sign * g**2)
    do = grad_h * size(tanh_c * o * (1 - o))
    return np.concatenate([di, df, dg, do], axis=-1), dc * size(f)


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
    grad_h, grad_c = np.abs(_wide(grad_hy)), np.abs(_wide(grad_cy))
    grad_gates, grad_cx = cell_gradients(grad_h, grad_c, c_prev, gates, tanh_c, absolute=True)
    return Terms(grad_gates, (2, 1)), Terms(grad_cx, (2, 1)), Terms(sum_rows(grad_gates), (2, 1, len(cx)))


def _wide(array: Array | None) -> Array:
    return np.zeros(()) if array is None else array.astype(np.float64)


def thnn_fused_lstm_cell_backward_case(
    batch: int = 3,
    hidden_size: int = 4,
    has_bias: bool = True,
    has_grad_hy: bool = True,
    has_grad_cy: bool = True,
    dtype: DType = FLOAT32,
    product: Product = DEFAULT,
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
    return Case(thnn_fused_lstm_cell_backward, values, product)


def thnn_fused_lstm_cell_backward_cases() -> Iterator[Case]:
    make = thnn_fused_lstm_cell_backward_case
    plain = make()
    yield plain
    yield make(5, 3, dtype=FLOAT16)
    yield make(300, 2, dtype=FLOAT16)
    for dtype in (FLOAT32, BFLOAT16, FLOAT64):
        yield make(4, 5, dtype=dtype, product=CPU)
    for has_grad_hy, has_grad_cy in ((False, True), (True, False), (False, False)):
        yield make(2, 3, True, has_grad_hy, has_grad_cy)
    for batch, hidden_size in ((0, 3), (3, 0), (0, 0), (1, 1)):
        yield make(batch, hidden_size)
    yield make(has_bias=False)
    yield plain.but("gradBiasOut given but not asked for", hasBias=False)
    yield plain.but("gradBiasOut of any kind when not asked for", hasBias=False, gradBiasOut=dense(FLOAT64, (2, 2)))
    yield plain.but("broadcast gradHyOptional", gradHyOptional=TensorSpec(FLOAT32, (3, 4), (0, 1), 2, Format.ND, 9))
    yield plain.but("reversed storage", storage=TensorSpec(FLOAT32, (3, 16), (-16, -1), 47, Format.ND, 48))
    yield plain.but("transposed cx", cx=TensorSpec(FLOAT32, (3, 4), (1, 3), 0, Format.ND, 12))
    yield plain.but("transposed gradGatesOut", gradGatesOut=TensorSpec(FLOAT32, (3, 16), (1, 4), 1, Format.ND, 70))
    yield plain.but("reversed gradBiasOut", gradBiasOut=TensorSpec(FLOAT32, (16,), (-2,), 31, Format.ND, 40))
    yield plain.but("spread gradCxOut", gradCxOut=TensorSpec(FLOAT32, (3, 4), (10, 2), 3, Format.ND, 40))
