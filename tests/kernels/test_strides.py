"""Where arrays lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn.base.dtype import BFLOAT16
from aclnn.base.geometry import Array
from aclnn.kernels.native.abi import TILE
from aclnn.kernels.shared import strides

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
    assert strides.address(view) == view.__array_interface__["data"][0] == strides._address_by_interface(view)


@given(st.lists(st.integers(1, 70), min_size=1, max_size=4), st.data())
def test_blocks_meet_every_element_once(shape: list[int], data: st.DataObject) -> None:
    walk = pytest.importorskip("aclnn.kernels.source.strides")
    whole = np.arange(np.prod(shape)).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    turned = np.arange(whole.size).reshape([shape[d] for d in order]).transpose(np.argsort(order))
    sizes, steps = strides.merged(shape, *([s // 8 for s in view.strides] for view in (whole, turned)))
    sizes, steps, items = strides.blocks(sizes, steps)
    rank, flat, met = len(steps[0]), [s for view in steps for s in view], []
    for item in range(items):
        block = walk.block_at(item, rank, sizes)
        assert 0 < block[2] * block[4] <= TILE
        starts = [walk.block_start(block, rank, sizes, flat, first) for first in (0, rank)]
        rows, columns = np.mgrid[: block[2], : block[4]]
        met.append([s + rows * v[-2] + columns * v[-1] for s, v in zip(starts, steps, strict=True)])
    places = [np.concatenate([m[i].ravel() for m in met]) for i in (0, 1)]
    assert (np.sort(places[0]) == np.arange(whole.size)).all()
    assert (turned.ravel()[places[0]] == places[1]).all()
