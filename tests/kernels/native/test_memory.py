"""Where arrays lie."""

from __future__ import annotations

import numpy as np
import pytest

from aclnn.base.dtype import BFLOAT16
from aclnn.base.geometry import Array
from aclnn.kernels.native import memory

WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)
VIEWS = {
    "whole": WHOLE,
    "part": WHOLE[1:, 2:],
    "backwards": WHOLE[::-1],
    "expanded": np.broadcast_to(WHOLE[0], (3, 6)),
    "a number": np.array(1.0),
    "empty": np.empty((0, 3)),
    "bfloat16": WHOLE.astype(BFLOAT16.numpy)[:, 1:],
    "a subclass": WHOLE.view(np.matrix),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_both_ways_to_an_address_agree(view: Array) -> None:
    assert memory.address(view) == view.__array_interface__["data"][0] == memory._address_by_interface(view)
