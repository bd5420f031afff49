"""The cell of an LSTM step, behind its matrix products, with gradients: on the parameters of PyTorch's own module."""

import torch

import aclnn.torch

torch.manual_seed(7)
module = torch.nn.LSTMCell(input_size=5, hidden_size=4)
x, hx, cx = torch.randn(3, 5), torch.randn(3, 4), torch.randn(3, 4, requires_grad=True)
w_ih, w_hh, b_ih, b_hh = module.parameters()

hy, cy = aclnn.torch.thnn_fused_lstm_cell(x @ w_ih.T, hx @ w_hh.T, cx, b_ih, b_hh)
(hy.sin() + cy.cos()).sum().backward()
ours, cx.grad = cx.grad, None

hy, cy = module(x, (hx, cx))
(hy.sin() + cy.cos()).sum().backward()
print(torch.allclose(ours, cx.grad, atol=1e-6))
# True
