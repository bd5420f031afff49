"""ELU forwards and backwards, and the gradient beside a finite difference."""

import numpy as np

import aclnn

x = np.array([-2.0, -0.5, 0.0, 1.5], np.float32)
grad_output = np.array([1.0, 2.0, 3.0, 4.0], np.float32)

y = aclnn.elu(x, alpha=1.5)
print(y.round(4))
# [-1.297  -0.5902  0.      1.5   ]

from_output = aclnn.elu_backward(grad_output, 1.5, 1.0, 1.0, is_result=True, self_or_result=y)
from_input = aclnn.elu_backward(grad_output, 1.5, 1.0, 1.0, is_result=False, self_or_result=x)
print(from_output.round(4), np.allclose(from_output, from_input))
# [0.203  1.8196 4.5    4.    ] True

# The difference quotient needs float64, which only the product cpu takes.
with aclnn.product("cpu"):
    wide, h = x.astype(np.float64), 1e-6
    quotient = (aclnn.elu(wide + h, 1.5) - aclnn.elu(wide - h, 1.5)) / (2 * h)
print((grad_output * quotient)[[0, 1, 3]].round(4))  # at 0 the two branches have different slopes
# [0.203  1.8196 4.    ]

aclnn.elu_(x, alpha=1.5)  # in place
print(np.array_equal(x, y))
# True
