"""A large dump, to measure with: `python -m tests.golden.large_dump FOLDER --calls 2000 --gigabytes 4`.

Every tenth pair of calls is an ELU, the others are convolutions; `--wrong` of them have a fault.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import aclnn
from tests.golden.dumping import DumpWriter


def write(folder: Path, calls: int, size: int, wrong: int = 3) -> Path:
    """Pairs of forward and backward; `size` is the height and width of pictures."""
    w = DumpWriter(folder)
    pairs = calls // 2
    faulty = set(range(pairs // 4, pairs, max(pairs // max(wrong, 1), 1))) if wrong else set()
    with aclnn.product("cpu"):
        for n in range(pairs):
            x = w.draw(4, 16, size, size)
            if n % 10 == 9:
                _elu(w, n, x)
            else:
                _conv(w, n, x, n in faulty)
    return w.finish()


def _elu(w: DumpWriter, n: int, x: np.ndarray) -> None:
    y = aclnn.elu(x, 1.0, 1.0, 1.0)
    g = w.draw(*x.shape)
    w.function(f"Functional.elu.{n}", [x, 1.0, False], y, g, [aclnn.elu_backward(g, 1.0, 1.0, 1.0, False, x)])


def _conv(w: DumpWriter, n: int, x: np.ndarray, is_wrong: bool) -> None:
    weight, bias = w.draw(16, 16, 3, 3), w.draw(16)
    given = (1, 1, 1, False, 0, 1)
    y = np.array(aclnn.convolution(x, weight, bias, *given, cube_math_type=0))
    if is_wrong:
        y[:, 5] *= np.float32(1.01)
    g = w.draw(*y.shape)
    grads = aclnn.convolution_backward(g, x, weight, [16], *given, (True, True, True), cube_math_type=0)
    w.function(f"Functional.conv2d.{n}", [x, weight, bias, [1, 1], [1, 1], [1, 1], 1], y, g, grads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--wrong", type=int, default=3)
    asked = parser.parse_args()
    per_pair = asked.gigabytes * 1e9 / (asked.calls / 2) / 4 / 4  # four large tensors of float32
    write(asked.folder, asked.calls, max(8, round((per_pair / 64) ** 0.5)), asked.wrong)


if __name__ == "__main__":
    main()
