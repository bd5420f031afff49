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
from aclnn.kernels.products import Tap
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


def multiply(a: Array, b: Array, taps: list[Tap], threads: int) -> Array:
    made = products.plan(len(a), a.shape[1], b.shape[1], taps, threads)
    assert made is not None
    out = Fenced(np.full((len(taps), a.shape[1], b.shape[1]), np.nan, np.float32))
    room = Fenced(np.full(made.size // 4, np.nan, np.float32))  # what lies in a workspace must not matter
    work, memory = made.work(), [Fenced(a), Fenced(b), out, room]
    work.point(0, *(address(fenced.array) for fenced in memory))
    work.run()
    return out.array


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
    shifts = [(k - kernel // 2) * step for k in range(kernel)]
    taps = [Tap(min(rows, max(0, s)), max(0, min(rows, rows + s)), s) for s in shifts]
    found = multiply(a, b, taps, threads)
    for tap, product in zip(taps, found, strict=True):
        if tap.start < tap.end:  # nothing is written for a tap without rows
            left, right = a[tap.start : tap.end], b[tap.start - tap.shift : tap.end - tap.shift]
            exact = left.T.astype(np.float64) @ right
            terms = Terms(abs(left.T).astype(np.float64) @ abs(right), [len(left)])
            assert (error_ratio(product, exact, terms, Precision(FLOAT32, (FLOAT32,))) <= 1).all()
        else:
            assert np.isnan(product).all()


def test_bits_do_not_depend_on_the_threads() -> None:
    a, b = numbers(500, 90, 1), numbers(500, 130, 2)
    taps = [Tap(0, 490, -10), Tap(0, 500, 0), Tap(10, 500, 10)]
    alone = multiply(a, b, taps, 1)
    assert all(np.array_equal(alone, multiply(a, b, taps, n)) for n in (2, 3, 4, 7))


def test_nothing_spreads_beyond_the_row_and_column_it_belongs_to() -> None:
    a, b = numbers(300, 20, 1), numbers(300, 40, 2)
    a[250, 3], b[40, 33] = np.inf, np.nan
    (found,) = multiply(a, b, [Tap(0, 300, 0)], 2)
    bad = ~np.isfinite(found)
    expected = np.zeros_like(bad)
    expected[3], expected[:, 33] = True, True
    assert np.array_equal(bad, expected)


@pytest.mark.parametrize(
    ("columns", "taps", "threads"),
    [(5000, [Tap(0, 9, 0)], 1), (8, [Tap(0, 9, 0), Tap(2000, 2009, 2000)], 1), (8, [Tap(0, 9, 0)], 100)],
    ids=["too wide", "too far apart", "too many threads"],
)
def test_what_others_do_better_is_left_to_them(columns: int, taps: list[Tap], threads: int) -> None:
    assert products.plan(4000, columns, columns, taps, threads) is None


def test_threads_share_evenly() -> None:
    for panels, slivers in ((1, 1), (3, 2), (19, 8), (37, 16)):
        for threads in (1, 2, 3, 4, 8, 16):
            made = products.plan(500, panels * TILE_ROWS, slivers * TILE_COLUMNS, [Tap(0, 500, 0)], threads)
            assert made is not None
            assert 1 <= made.threads <= threads
            assert made.items == made.chunk * made.threads
