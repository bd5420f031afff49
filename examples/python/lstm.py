"""Two layers of a bidirectional LSTM over sequences of different lengths: forward, then backward."""

import numpy as np

import aclnn

STEPS, BATCH, INPUT, HIDDEN, LAYERS = 6, 3, 5, 4, 2
numbers = np.random.default_rng(7)


def normal(*shape):
    return numbers.standard_normal(shape, np.float32) / 2


params = []
for layer in range(LAYERS):
    width = INPUT if layer == 0 else 2 * HIDDEN
    for _direction in range(2):
        params += [normal(4 * HIDDEN, width), normal(4 * HIDDEN, HIDDEN), normal(4 * HIDDEN), normal(4 * HIDDEN)]

x = normal(STEPS, BATCH, INPUT)
hx = [normal(2 * LAYERS, BATCH, HIDDEN), normal(2 * LAYERS, BATCH, HIDDEN)]
batch_sizes = np.array([3, 3, 2, 2, 1, 1], np.int64)  # lengths 6, 4 and 2
kind = {"has_bias": True, "num_layers": LAYERS, "bidirectional": True, "batch_first": False}

output, hy, cy, i, g, f, o, h, c, tanhc = aclnn.lstm(x, params, hx, batch_sizes, **kind)
print(output.shape, hy.shape, len(i), i[0].shape)
# (6, 3, 8) (4, 3, 4) 4 (6, 3, 4)

dy, dh, dc = normal(*output.shape), normal(*hy.shape), normal(*cy.shape)
dx, dh_prev, dc_prev, dparams = aclnn.lstm_backward(
    x, hx, params, dy, dh, dc, i, g, f, o, h, c, tanhc, batch_sizes, **kind
)
print(dx.shape, dh_prev.shape, len(dparams))
# (6, 3, 5) (4, 3, 4) 16

# The shortest sequence ends after two steps: nothing behind that has a gradient.
print(np.abs(dx[:, 2]).max(axis=-1) > 0)
# [ True  True False False False False]
