"""Blocks of views with any strides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclnn.kernels.native.abi import TILE
from aclnn.kernels.shared import strides


@given(st.lists(st.integers(1, 70), min_size=1, max_size=4), st.data())
def test_blocks_meet_every_element_once(shape: list[int], data: st.DataObject) -> None:
    source = pytest.importorskip("aclnn.kernels.source.strides")
    whole = np.arange(np.prod(shape)).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    turned = np.arange(whole.size).reshape([shape[d] for d in order]).transpose(np.argsort(order))
    sizes, along = strides.merged(shape, *([s // 8 for s in view.strides] for view in (whole, turned)))
    sizes, along, items = strides.blocks(sizes, along)
    rank, flat, met = len(along[0]), [s for view in along for s in view], []
    for item in range(items):
        block = source.block_at(item, rank, sizes)
        assert 0 < block[2] * block[4] <= TILE
        starts = [source.block_start(block, rank, sizes, flat, first) for first in (0, rank)]
        rows, columns = np.mgrid[: block[2], : block[4]]
        met.append([s + rows * v[-2] + columns * v[-1] for s, v in zip(starts, along, strict=True)])
    places = [np.concatenate([m[i].ravel() for m in met]) for i in (0, 1)]
    assert (np.sort(places[0]) == np.arange(whole.size)).all()
    assert (turned.ravel()[places[0]] == places[1]).all()
