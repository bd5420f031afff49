"""Products of matrices on tiles: any sizes, pitches and threads, right to the bound, and nothing else is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec
from aclnn.kernels.matmul import matrix
from aclnn.kernels.matmul.matrix import Packed
from aclnn.kernels.native.memory import address, aligned
from aclnn.kernels.shared.launch import Launch, Numbers, Room
from aclnn.kernels.shared.workspace import Arena

U = 2.0**-24
SIZES = st.one_of(st.integers(1, 20), st.sampled_from([31, 33, 64, 65, 129]))
DEPTHS = st.one_of(st.integers(1, 20), st.sampled_from([63, 65, 255, 257, 300, 700]))


def spread(rows: int, columns: int, gap: int, rng: np.random.Generator) -> tuple[Array, TensorSpec]:
    """A matrix whose rows are `gap` elements more apart than they are long."""
    whole = rng.standard_normal((rows, columns + gap)).astype(np.float32)
    return whole[:, :columns], TensorSpec(FLOAT32, (rows, columns), (columns + gap, 1))


def run_launch(launch: Launch, room: Room, places: Mapping[str, int], workspace: int) -> None:
    work = launch.work(room.numbers)
    launch.aim(work, places, workspace)
    work.run()


def work_in(arena: Arena, run: Callable[[int], None]) -> None:
    """Runs with a workspace of exactly the size that was planned; what lies behind it stays as it is."""
    memory = np.full(arena.size + 256, 0x5A, np.uint8)
    run(aligned(address(memory)))
    assert (memory[arena.size :] == 0x5A).all()


def assert_close(got: Array, exact: Array, sizes: Array, terms: int) -> None:
    """Within the bound that is stated for sums of so many terms."""
    assert (np.abs(got - exact) <= (8 + np.sqrt(terms)) * U * sizes + U * np.abs(exact)).all()


def multiply(a: TensorSpec, b: TensorSpec, places: tuple[Array, Array, Array], threads: int, adds: bool) -> None:
    """c = a·b or c += a·b, of arrays that lie as the specs say."""
    room = Room(Arena(), Numbers(), threads)
    packed = Packed(b, room)
    launch = matrix.matmul(a, packed, room, adds)
    left, right, out = (address(array) for array in places)

    def run(workspace: int) -> None:
        run_launch(packed.launch, room, {"b": right}, workspace)
        run_launch(launch, room, {"a": left, "c": out}, workspace)

    work_in(room.arena, run)


@settings(max_examples=150)
@given(
    rows=st.one_of(SIZES, st.sampled_from([287, 288, 289, 600])),
    depth=DEPTHS,
    columns=SIZES,
    gap=st.sampled_from([0, 1, 16]),
    turned=st.booleans(),
    adds=st.booleans(),
    threads=st.integers(1, 3),
)
def test_products(rows: int, depth: int, columns: int, gap: int, turned: bool, adds: bool, threads: int) -> None:
    rng = np.random.default_rng(rows * depth + columns)
    a, a_spec = spread(rows, depth, gap, rng)
    b = rng.standard_normal((columns, depth) if turned else (depth, columns)).astype(np.float32)
    b_spec = TensorSpec(FLOAT32, (depth, columns), (1, depth) if turned else (columns, 1))
    c, _ = spread(rows, columns, 0, rng)
    before = c.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "PER_THREAD", 1)
        multiply(a_spec, b_spec, (a, b, c), threads, adds)
    left, right = a.astype(float), (b.T if turned else b).astype(float)
    present = before.astype(float) if adds else 0 * before
    exact, sizes = left @ right + present, np.abs(left) @ np.abs(right) + np.abs(present)
    assert_close(c, exact, sizes, depth)


def sum_rows(a: TensorSpec, arrays: list[Array], threads: int) -> None:
    """aᵀ·b and aᵀ·more."""
    _, b, more, c, c_more = arrays
    results = [TensorSpec(FLOAT32, out.shape, (out.strides[0] // 4, out.strides[1] // 4)) for out in (c, c_more)]
    room = Room(Arena(), Numbers(), threads)
    launch = matrix.row_sums(a, (b.shape[1], more.shape[1]), (results[0], results[1]), room)
    places = {name: address(array) for name, array in zip(("a", "b", "more", "c", "c_more"), arrays, strict=True)}
    work_in(room.arena, lambda workspace: run_launch(launch, room, places, workspace))


@settings(max_examples=80)
@given(
    rows=DEPTHS,
    left=SIZES,
    right=SIZES,
    more=SIZES,
    gap=st.sampled_from([0, 1, 16]),
    threads=st.sampled_from([1, 2, 3]),
)
def test_sums_over_rows(rows: int, left: int, right: int, more: int, gap: int, threads: int) -> None:
    rng = np.random.default_rng(rows * left + right)
    (a, a_spec), (b, _), (other, _) = (spread(rows, n, g, rng) for n, g in ((left, gap), (right, 0), (more, 0)))
    (c, _), (d, _) = spread(left, right, 0, rng), spread(left, more, gap, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "PER_THREAD", 1)
        sum_rows(a_spec, [a, b, other, c, d], threads)
    for found, factor in ((c, b.astype(float)), (d, other.astype(float))):
        assert_close(found, a.astype(float).T @ factor, np.abs(a).astype(float).T @ np.abs(factor), rows)


@pytest.mark.parametrize("depth", [3, 64, 65, 255, 700])
def test_bits_of_a_row_do_not_depend_on_where_in_which_tile_it_stands(depth: int) -> None:
    """Where chains end in a tile is a matter of columns alone."""
    rng = np.random.default_rng(depth)
    (row, _), (b, b_spec) = spread(1, depth, 0, rng), spread(depth, 83, 0, rng)
    seen = set()
    for rows in (1, 4, 6, 7, 14):
        a, a_spec = np.repeat(row, rows, 0), TensorSpec(FLOAT32, (rows, depth), (depth, 1))
        c, _ = spread(rows, 83, 0, rng)
        multiply(a_spec, b_spec, (a, b, c), 1, adds=False)
        seen |= {line.tobytes() for line in c}
    assert len(seen) == 1


@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 8, 13, 300])
def test_the_same_bits_on_any_number_of_threads(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "PER_THREAD", 1)
    rng = np.random.default_rng(rows)
    (a, a_spec), (b, b_spec) = spread(rows, 300, 16, rng), spread(300, 170, 0, rng)
    (other, _), (c, _), (d, _), (e, _) = (
        spread(*size, 0, rng) for size in ((rows, 33), (rows, 170), (300, 33), (300, 9))
    )
    last, _ = spread(rows, 9, 0, rng)
    seen = set()
    for threads in (1, 2, 3, 7):
        multiply(a_spec, b_spec, (a, b, c), threads, adds=False)
        sum_rows(a_spec, [a, other, last, d, e], threads)
        seen.add((c.tobytes(), d.tobytes(), e.tobytes()))
    assert len(seen) == 1
