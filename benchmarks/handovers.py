"""Where one kernel hands over to another: both timed on convolutions at either side, and one thread beside two.

python -m benchmarks.handovers --dtype float32
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import aclnn
from aclnn.base import dtype as dtypes
from aclnn.base.dtype import DType
from aclnn.kernels.convolution import direct, fast
from aclnn.kernels.registry import Refusal
from benchmarks import bench_conv_tbc, bench_convolution, bench_elu, bench_lstm, bench_lstm_cell
from benchmarks.measure import Call, compare
from benchmarks.shapes import convolution_arguments

SECONDS, THREADS, SLOWER = 0.1, 2, 1.25
CHANNELS = (
    (4, 4),
    (2, 8),
    (16, 1),
    (4, 5),
    (17, 1),
    (6, 6),
    (4, 8),
    (3, 16),
    (32, 1),
    (64, 1),
    (4, 16),
    (8, 8),
    (3, 32),
)
WINDOWS: list[tuple[tuple[int, ...], int, int]] = [  # size, kernel, stride
    *(((10, 10), 3, 1), ((28, 28), 1, 1), ((28, 28), 3, 1), ((112, 112), 3, 1)),
    *(((56, 56), 7, 1), ((4096,), 9, 1), ((28, 28), 3, 2)),
]
GROWING = [
    (1, c, n) for c, n in ((1, 1), (1, 4), (2, 4), (3, 4), (4, 4), (4, 6), (5, 6), (6, 6), (6, 8), (8, 8), (10, 8))
]
GROWING += [(1, c, n) for c, n in ((12, 10), (16, 12), (20, 14), (26, 17), (32, 20), (45, 24), (64, 28))]
GROWING += [(batch, 64, 28) for batch in (3, 10, 30, 100)]
"""Batch, channels and length of 3×3 convolutions from one element to ten million."""
SHARED: dict[Any, list[dict[str, Any]]] = {
    bench_elu: [{"size": [n]} for n in (1, 1000, 10_000, 16384, 25_000, 40960, 100_000, 10**6, 10**7)],
    bench_lstm_cell: [{"size": [batch, 512]} for batch in (1, 4, 8, 16, 32, 80, 800)],
    bench_convolution: [{"x": [1, c, n, n], "w": [c, c, 3, 3], "padding": 1} for c, n in ((8, 28), (16, 12), (64, 7))],
    bench_conv_tbc: [{"x": [n, 2, 16], "w": [3, 16, 16], "padding": 1} for n in (10, 80, 160, 320, 3000)],
    bench_lstm: [
        {"size": [10, batch, n, n]} for batch, n in ((1, 8), (4, 16), (2, 64), (8, 64), (1, 128), (4, 128), (32, 128))
    ],
}
"""Sizes to either side of where a second thread begins to take part."""


def growing() -> Iterator[tuple[str, dict[str, Any]]]:
    """Convolutions of every size."""
    for batch, c, n in GROWING:
        yield f"{batch}×{c}×{n}×{n}", {"x": [batch, c, n, n], "w": [c, c, 3, 3], "padding": 1}


def shapes() -> Iterator[tuple[str, dict[str, Any]]]:
    """Convolutions about where matmuls are said to be ahead, both ways round."""
    for (one, other), (size, kernel, stride) in itertools.product(CHANNELS, WINDOWS):
        for channels, others in dict.fromkeys(((one, other), (other, one))):
            name = f"{channels}→{others} {'×'.join(map(str, size))} kernel {kernel} stride {stride}"
            sides = {"x": [2, channels, *size], "w": [others, channels, *[kernel] * len(size)]}
            yield name, {**sides, "padding": kernel // 2, "stride": stride}


def kernels(shape: dict[str, Any], dtype: DType, forward: bool) -> tuple[str, dict[str, Call]]:
    """Which kernel serves a convolution, and the runs of those that could."""
    arguments = convolution_arguments(shape, dtype)
    operator: Any = aclnn.convolution if forward else aclnn.convolution_backward
    given = (*arguments[1:3], None, *arguments[4:-1]) if forward else arguments
    plan = operator.plan(*given, repeatable=True)
    found: dict[str, Call] = {}
    ways = {"direct": fast.convolution_direct, "tiles": fast.convolution_on_tiles, "onednn": fast.convolution_onednn}
    with patch.object(direct, "matmuls_are_ahead", lambda *given: False):
        for name, way in ways.items():
            prepared = way(plan.plan.call, THREADS)
            if not isinstance(prepared, Refusal) and (name != "tiles" or plan.kernel != "onednn"):
                workspace = np.empty(prepared.workspace_size, np.uint8)
                found[name] = partial(prepared.instantiate(), workspace, *plan._views)
    return plan.kernel, found


def threads(bench: Any, shape: dict[str, Any], column: str) -> dict[str, Call]:
    """A call planned for one thread, and for two."""
    found = {}
    for count in (1, THREADS):
        with aclnn.threads(count):
            found[f"{count} threads"] = bench.makers(shape, dtypes.FLOAT32, column)["aclnn"]()
    return found


def line(name: str, serving: str, calls: dict[str, Call]) -> None:
    """Times calls in turn, and prints how much the one that serves is behind the best of them."""
    timed = {each: times.p50 for each, times in compare(calls, SECONDS)[0].items()}
    ratio = timed[serving] / min(timed.values())
    told = ", ".join(f"{each} {1e6 * seconds:.1f} µs" for each, seconds in timed.items())
    print(f"{ratio:.2f}{'!' if ratio > SLOWER else ' '} {name}: {told}; {serving} serves", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--growing", action="store_true", help="only one row of sizes per operator")
    given = parser.parse_args()
    dtype = dtypes.by_name(given.dtype)
    assert dtype is not None
    with aclnn.threads(THREADS):
        known = growing() if given.growing else itertools.chain(growing(), shapes())
        for (name, shape), forward in itertools.product(known, (True, False)):
            serving, calls = kernels(shape, dtype, forward)
            if len(calls) > 1:
                line(f"{'forward' if forward else 'gradients'} {name}", serving, calls)
    for bench, sizes in SHARED.items():
        for shape, column in itertools.product(sizes, ("given", "forward")):
            line(f"{bench.__name__} {column} {shape}", f"{THREADS} threads", threads(bench, shape, column))


if __name__ == "__main__":
    main()
