"""Products of shifted rows, made together."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from aclnn.base.dtype import FLOAT32
from aclnn.base.geometry import Array
from aclnn.base.tolerance import Precision, Terms, error_ratio
from aclnn.kernels import products
from aclnn.kernels.nopython.agreed import TILE_COLUMNS, TILE_DEPTH, TILE_ROWS
from aclnn.kernels.products import Products, Tap
from aclnn.kernels.strides import address

PAGE = mmap.PAGESIZE


class Fenced:
    """Float32 elements that end where no memory is: one step further ends the process."""

    def __init__(self, values: Array):
        size = -(-values.nbytes // PAGE) * PAGE
        self.memory = mmap.mmap(-1, size + PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        assert protect(ctypes.c_void_p(start + size), ctypes.c_size_t(PAGE), 0) == 0
        self.array = np.frombuffer(self.memory, np.float32, values.size, size - values.nbytes).reshape(values.shape)
        self.array[:] = values


def run(made: Products | None, *operands: Array) -> None:
    """Operands are a, b and the results, then the second b and its results; these are written over."""
    assert made is not None
    room = Fenced(empty(made.size // 4))  # what lies in a workspace must not matter
    memory = [Fenced(operand) for operand in operands]
    work = made.work()
    work.point(0, *(address(fenced.array) for fenced in (*memory[:3], room, *memory[3:])))
    work.run()
    for operand, fenced in zip(operands, memory, strict=True):
        operand[...] = fenced.array


def turned(a: Array, b: Array, taps: list[Tap], threads: int) -> Array:
    made = products.turned(len(a), a.shape[1], b.shape[1], taps, threads)
    out = empty(len(taps), a.shape[1], b.shape[1])
    run(made, a, b, out)
    return out


def straight(a: Array, b: Array, taps: list[Tap], threads: int) -> Array:
    """Of a and one matrix per tap, columns × depth."""
    made = products.straight(len(a), a.shape[1], b.shape[1], taps, threads)
    out = empty(len(a), b.shape[1])
    run(made, a, b, out)
    return out


def empty(*shape: int) -> Array:
    return np.full(shape, np.nan, np.float32)


def shifted_taps(rows: int, kernel: int, step: int) -> list[Tap]:
    shifts = [(k - kernel // 2) * step for k in range(kernel)]
    return [Tap(min(rows, max(0, s)), max(0, min(rows, rows + s)), s) for s in shifts]


def numbers(rows: int, columns: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


sizes = st.one_of(st.integers(1, 20), st.sampled_from([TILE_ROWS, TILE_COLUMNS, 63, 97, 320]))


@settings(max_examples=150)
@given(
    rows=st.one_of(st.integers(1, 40), st.integers(TILE_DEPTH - 2, 2 * TILE_DEPTH + 2)),
    a_columns=sizes,
    b_columns=sizes,
    step=st.integers(1, 30),
    kernel=st.integers(1, 5),
    threads=st.integers(1, 5),
)
@example(rows=600, a_columns=300, b_columns=300, step=16, kernel=3, threads=2)
def test_every_tap_is_the_product_of_its_rows(
    rows: int, a_columns: int, b_columns: int, step: int, kernel: int, threads: int
) -> None:
    a, b = numbers(rows, a_columns, 1), numbers(rows, b_columns, 2)
    taps = shifted_taps(rows, kernel, step)
    check_taps(a, b, taps, turned(a, b, taps, threads))


@settings(max_examples=100)
@given(
    rows=st.one_of(st.integers(1, 40), st.integers(TILE_DEPTH - 2, 2 * TILE_DEPTH + 2)),
    a_columns=sizes,
    b_columns=sizes,
    more_columns=sizes,
    kernel=st.integers(1, 3),
    threads=st.integers(1, 7),
)
@example(
    rows=460, a_columns=TILE_ROWS * (2 * products.MOST_PANELS + 1), b_columns=70, more_columns=5, kernel=1, threads=1
)
@example(rows=9, a_columns=2, b_columns=3 * TILE_COLUMNS, more_columns=2 * TILE_COLUMNS, kernel=1, threads=5)
def test_two_right_hand_sides_have_products_of_their_own(
    rows: int, a_columns: int, b_columns: int, more_columns: int, kernel: int, threads: int
) -> None:
    a, b, more = numbers(rows, a_columns, 1), numbers(rows, b_columns, 2), numbers(rows, more_columns, 3)
    taps = shifted_taps(rows, kernel, 3)
    out, out_more = empty(kernel, a_columns, b_columns), empty(kernel, a_columns, more_columns)
    run(products.turned(rows, a_columns, b_columns, taps, threads, more_columns), a, b, out, more, out_more)
    check_taps(a, b, taps, out)
    check_taps(a, more, taps, out_more)


def check_taps(a: Array, b: Array, taps: list[Tap], found: Array) -> None:
    for tap, product in zip(taps, found, strict=True):
        if tap.start < tap.end:  # nothing is written for a tap without rows
            left, right = a[tap.start : tap.end], b[tap.start - tap.shift : tap.end - tap.shift]
            exact = left.T.astype(np.float64) @ right
            terms = Terms(abs(left.T).astype(np.float64) @ abs(right), [len(left)])
            assert (error_ratio(product, exact, terms, Precision(FLOAT32, (FLOAT32,))) <= 1).all()
        else:
            assert np.isnan(product).all()


@settings(max_examples=150)
@given(
    rows=st.integers(1, 60),
    depth=st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 130])),
    columns=st.one_of(st.integers(1, 70), st.sampled_from([TILE_COLUMNS, 2 * TILE_COLUMNS, 190, 300])),
    step=st.integers(1, 30),
    kernel=st.integers(1, 5),
    threads=st.integers(1, 5),
)
def test_every_row_is_the_sum_over_its_taps(
    rows: int, depth: int, columns: int, step: int, kernel: int, threads: int
) -> None:
    a, b = numbers(rows, depth, 1), numbers(kernel * columns, depth, 2).reshape(kernel, columns, depth)
    taps = shifted_taps(rows, kernel, step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "MOST_IDLE", 100)
        found = straight(a, b, taps, threads)
    exact, largest, counts = np.zeros((rows, columns)), np.zeros((rows, columns)), np.zeros((rows, 1))
    for tap, matrix in zip(taps, b, strict=True):
        met = a[tap.start - tap.shift : tap.end - tap.shift].astype(np.float64) if tap.start < tap.end else a[:0]
        exact[tap.start : tap.start + len(met)] += met @ matrix.T
        largest[tap.start : tap.start + len(met)] += abs(met) @ abs(matrix.T)
        counts[tap.start : tap.start + len(met)] += depth
    assert (found[counts[:, 0] == 0] == 0).all()
    terms = Terms(largest, [kernel * depth])
    assert (error_ratio(found, exact, terms, Precision(FLOAT32, (FLOAT32,))) <= 1).all()


def test_bits_do_not_depend_on_the_threads() -> None:
    a, b = numbers(500, 90, 1), numbers(500, 130, 2)
    taps = [Tap(0, 490, -10), Tap(0, 500, 0), Tap(10, 500, 10)]
    alone = turned(a, b, taps, 1)
    assert all(np.array_equal(alone, turned(a, b, taps, n)) for n in (2, 3, 4, 7))
    c = numbers(3 * 250, 90, 3).reshape(3, 250, 90)
    alone = straight(a, c, taps, 1)
    assert all(np.array_equal(alone, straight(a, c, taps, n)) for n in (2, 3, 4, 7))


def test_nothing_spreads_beyond_the_row_and_column_it_belongs_to() -> None:
    a, b = numbers(300, 20, 1), numbers(300, 40, 2)
    a[250, 3], b[40, 33] = np.inf, np.nan
    (found,) = turned(a, b, [Tap(0, 300, 0)], 2)
    bad = ~np.isfinite(found)
    expected = np.zeros_like(bad)
    expected[3], expected[:, 33] = True, True
    assert np.array_equal(bad, expected)


def test_nothing_spreads_beyond_the_rows_that_a_tap_has() -> None:
    a, b = numbers(300, 20, 1), numbers(2 * 60, 20, 2).reshape(2, 60, 20)
    a[250, 3], b[1, 33, 7] = np.inf, np.nan
    found = straight(a, b, [Tap(0, 300, 0), Tap(100, 300, 100)], 2)
    expected = np.zeros(found.shape, bool)
    expected[250], expected[100:, 33] = True, True
    assert np.array_equal(~np.isfinite(found), expected)


@pytest.mark.parametrize(
    ("columns", "taps", "threads"),
    [(20_000, [Tap(0, 9, 0)], 1), (8, [Tap(0, 9, 0), Tap(2000, 2009, 2000)], 1), (8, [Tap(0, 9, 0)], 100)],
    ids=["too wide", "too far apart", "too many threads"],
)
def test_what_others_do_better_is_left_to_them(columns: int, taps: list[Tap], threads: int) -> None:
    assert products.turned(4000, columns, columns, taps, threads) is None


@pytest.mark.parametrize(
    ("depth", "columns", "threads"),
    [(5000, 64, 1), (64, 80, 1), (64, 64, 100)],
    ids=["too deep", "too many columns idle", "too many threads"],
)
def test_what_others_add_up_sooner_is_left_to_them(depth: int, columns: int, threads: int) -> None:
    assert products.straight(4000, depth, columns, [Tap(0, 9, 0)], threads) is None


def test_threads_share_evenly() -> None:
    for panels, slivers in ((1, 1), (3, 2), (19, 8), (37, 16)):
        for threads in (1, 2, 3, 4, 8, 16):
            made = products.turned(500, panels * TILE_ROWS, slivers * TILE_COLUMNS, [Tap(0, 500, 0)], threads)
            assert made is not None
            assert 1 <= made.threads <= threads
            assert made.items == made.chunk * made.threads
            down, across = made.arguments[12:14]
            assert down * across == made.threads
            assert -(-panels // down) * -(-slivers // across) * made.threads < 2 * panels * slivers
