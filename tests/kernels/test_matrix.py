"""Products of matrices on tiles: any sizes, pitches and threads, right to the bound, and nothing else is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.kernels import matrix
from aclnn.kernels.program import Arena
from aclnn.kernels.strides import address, aligned

U = 2.0**-24
SIZES = st.one_of(st.integers(1, 20), st.sampled_from([31, 33, 64, 65, 129]))
DEPTHS = st.one_of(st.integers(1, 20), st.sampled_from([63, 65, 255, 257, 300, 700]))


def spread(rows: int, columns: int, gap: int, rng: np.random.Generator) -> tuple[Array, TensorSpec]:
    """A matrix whose rows are `gap` elements more apart than they are long."""
    whole = rng.standard_normal((rows, columns + gap)).astype(np.float32)
    return whole[:, :columns], TensorSpec(FLOAT32, (rows, columns), (columns + gap, 1))


def work_in(arena: Arena, run: Callable[[int], None]) -> None:
    """Runs with a workspace of exactly the size that was planned; what lies behind it stays as it is."""
    memory = np.full(arena.size + 256, 0x5A, np.uint8)
    run(aligned(address(memory)))
    assert (memory[arena.size :] == 0x5A).all()


def assert_close(got: Array, exact: Array, sizes: Array, terms: int) -> None:
    """Within the bound that is stated for sums of so many terms."""
    assert (np.abs(got - exact) <= (8 + np.sqrt(terms)) * U * sizes + U * np.abs(exact)).all()


@settings(max_examples=120)
@given(
    rows=SIZES,
    depth=DEPTHS,
    columns=SIZES,
    gap=st.sampled_from([0, 1, 16]),
    turned=st.booleans(),
    adds=st.booleans(),
    threads=st.integers(1, 3),
)
@pytest.mark.parametrize("few", [True, False], ids=["few rows", "boxes"])
def test_products(
    few: bool, rows: int, depth: int, columns: int, gap: int, turned: bool, adds: bool, threads: int
) -> None:
    rng = np.random.default_rng(rows * depth + columns)
    a, a_spec = spread(rows, depth, gap, rng)
    b = rng.standard_normal((columns, depth) if turned else (depth, columns)).astype(np.float32)
    b_spec = TensorSpec(FLOAT32, (depth, columns), (1, depth) if turned else (columns, 1))
    c, c_spec = spread(rows, columns, 0, rng)
    before, arena = c.copy(), Arena()
    with pytest.MonkeyPatch.context() as patch:
        if not few:
            patch.setattr(matrix, "FEW_ROWS", 0)
        product = matrix.Product(a_spec, b_spec, c_spec, threads, arena, adds).multiplier()

    def run(workspace: int) -> None:
        product.pack(address(b), workspace)
        product.aim(address(a), address(c), workspace)
        product.work.run()

    work_in(arena, run)
    left, right = a.astype(float), (b.T if turned else b).astype(float)
    present = before.astype(float) if adds else 0 * before
    exact, sizes = left @ right + present, np.abs(left) @ np.abs(right) + np.abs(present)
    assert_close(c, exact, sizes, depth)


@settings(max_examples=80)
@given(rows=DEPTHS, left=SIZES, right=SIZES, gap=st.sampled_from([0, 1, 16]), threads=st.integers(1, 3))
def test_sums_over_rows(rows: int, left: int, right: int, gap: int, threads: int) -> None:
    rng = np.random.default_rng(rows * left + right)
    (a, a_spec), (b, b_spec) = spread(rows, left, gap, rng), spread(rows, right, 0, rng)
    c, c_spec = spread(left, right, 0, rng)
    arena = Arena()
    sums = matrix.RowSums(a_spec, b_spec, c_spec, threads, arena).adder()
    work_in(arena, lambda workspace: sums.run(address(a), address(b), address(c), workspace))
    one, other = a.astype(float), b.astype(float)
    assert_close(c, one.T @ other, np.abs(one).T @ np.abs(other), rows)


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 8, 13])
def test_few_rows_and_boxes_agree_on_threads(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits for any number of threads, each way."""
    rng = np.random.default_rng(rows)
    (a, a_spec), (b, b_spec) = spread(rows, 300, 16, rng), spread(300, 170, 0, rng)
    c, c_spec = spread(rows, 170, 0, rng)
    for few in (512, 0):
        monkeypatch.setattr(matrix, "FEW_ROWS", few)
        seen: set[Any] = set()
        for threads in (1, 2, 3, 7):
            arena = Arena()
            product = matrix.Product(a_spec, b_spec, c_spec, threads, arena).multiplier()

            def run(workspace: int, product: matrix.Multiplier = product) -> None:
                product.pack(address(b), workspace)
                product.aim(address(a), address(c), workspace)
                product.work.run()

            work_in(arena, run)
            seen.add(c.tobytes())
        assert len(seen) == 1
