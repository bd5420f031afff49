"""A bidirectional LSTM of two layers with its gradients in PyTorch, on the parameters of PyTorch's own module."""

import torch

import aclnn.torch

torch.manual_seed(7)
module = torch.nn.LSTM(input_size=5, hidden_size=4, num_layers=2, bidirectional=True)
params = list(module.parameters())  # w_ih, w_hh, b_ih, b_hh per layer and direction: the order of the operator
x = torch.randn(6, 3, 5, requires_grad=True)

output, hy, cy = aclnn.torch.lstm(x, params, num_layers=2, bidirectional=True)
grad_output = torch.randn_like(output)
ours = torch.autograd.grad(output, (x, *params), grad_output)

theirs, _ = module(x)
same = zip(ours, torch.autograd.grad(theirs, (x, *params), grad_output), strict=True)
print(all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in same))
# True
