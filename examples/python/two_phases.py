"""Plan once, run often: two phases, a stream, a workspace, and memory exchanged between runs."""

import numpy as np

import aclnn

grad_output = np.linspace(-1, 1, 6, dtype=np.float32)
x = np.linspace(-3, 3, 6, dtype=np.float32)
grad_input = np.empty((6, 2), np.float32)[:, 0]  # results are written through any strides

plan = aclnn.elu_backward.plan(grad_output, 1.0, 1.0, 1.0, False, x, out=grad_input, repeatable=True)
print(plan.explain().splitlines()[0])
# aclnnEluBackward on Atlas A2: kernel numba, workspace 0 bytes

workspace = np.empty(plan.workspace_size, np.uint8)
with aclnn.Stream() as stream:  # leaves the block when all work is done
    plan.run(workspace, stream)
print(grad_input.round(3))
# [-0.05  -0.099 -0.11   0.2    0.6    1.   ]

plan.set_address("grad_output", np.ones(6, np.float32))
plan.run(workspace)  # without a stream: at once
print(grad_input.round(3))
# [0.05  0.165 0.549 1.    1.    1.   ]
