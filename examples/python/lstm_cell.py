"""One step of an LSTM: the matrix products are yours, the cell behind them is the operator."""

import numpy as np

import aclnn

BATCH, INPUT, HIDDEN = 3, 5, 4
numbers = np.random.default_rng(7)


def normal(*shape):
    return numbers.standard_normal(shape, np.float32) / 2


x, hx, cx = normal(BATCH, INPUT), normal(BATCH, HIDDEN), normal(BATCH, HIDDEN)
w_ih, w_hh = normal(4 * HIDDEN, INPUT), normal(4 * HIDDEN, HIDDEN)
b_ih, b_hh = normal(4 * HIDDEN), normal(4 * HIDDEN)

hy, cy, storage = aclnn.thnn_fused_lstm_cell(x @ w_ih.T, hx @ w_hh.T, cx, b_ih, b_hh)
print(hy.shape, cy.shape, storage.shape)
# (3, 4) (3, 4) (3, 16)

grad_hy, grad_cy = normal(BATCH, HIDDEN), normal(BATCH, HIDDEN)
grad_gates, grad_cx, grad_bias = aclnn.thnn_fused_lstm_cell_backward(grad_hy, grad_cy, cx, cy, storage, has_bias=True)
grad_x, grad_w_ih = grad_gates @ w_ih, grad_gates.T @ x
print(grad_x.shape, grad_w_ih.shape, np.allclose(grad_bias, grad_gates.sum(axis=0), atol=1e-6))
# (3, 5) (16, 5) True

# A gradient that does not exist is None, and counts as zeros.
zeros = np.zeros_like(cx)
_, with_none, no_bias = aclnn.thnn_fused_lstm_cell_backward(grad_hy, None, cx, cy, storage, has_bias=False)
_, with_zeros, _ = aclnn.thnn_fused_lstm_cell_backward(grad_hy, zeros, cx, cy, storage, has_bias=False)
print(no_bias, np.array_equal(with_none, with_zeros))
# None True
