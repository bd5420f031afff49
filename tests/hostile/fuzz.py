"""What `make fuzz` feeds: bytes → tables, case files, values and calls. Anything but an AclnnError is a find.

What was found lies in `corpus/` and is fed first, by `make test` too.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import aclnn
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.cases.table import parse, read_table
from aclnn.contract.cases import fill
from aclnn.golden.read import casefile, containers
from tests.hostile.liars import LIARS

CORPUS = Path(__file__).parent / "corpus"
FOLDER = Path(tempfile.mkdtemp(prefix="aclnn-fuzz-"))  # 0700
OPERATORS = [next(ops.cases(op)) for op in ops.all_ops()]


def fuzz_table(data: bytes) -> None:
    path = FOLDER / "t.csv"
    path.write_bytes(data)
    read_table(path, CPU)


def fuzz_file(data: bytes) -> None:
    path = FOLDER / ("c" + (".npz", ".npy", ".safetensors", ".bin")[data[0] % 4])
    path.write_bytes(data[1:])
    containers.read(path)
    casefile.load_case(path)


def fuzz_description(data: bytes) -> None:
    described = casefile.describe(data.decode("utf-8", "replace"), Path("c"))
    x = np.ones((2, 3), np.float32)
    casefile.build(described, {"gradOutput": x, "selfOrResult": x, "self": x}, Path("c"))


def fuzz_value(data: bytes) -> None:
    parse(data.decode("utf-8", "replace"))


def fuzz_call(data: bytes) -> None:
    """A valid call of some operator with some of its arguments replaced."""
    draw = random.Random(data)
    case = OPERATORS[draw.randrange(len(OPERATORS))]
    filled: dict[str, Any] = fill(case)
    for arg in draw.sample(case.op.args, draw.randint(1, 3)):
        filled[arg.name] = draw.choice(LIARS) if draw.random() < 0.7 else draw.randint(-(2**70), 2**70)
    given = {a.name: filled[a.name] for a in case.op.inputs}
    getattr(aclnn, case.op.python)._call(given, None, case.device, draw.choice(["auto", "numpy", "reference"]))


TARGETS: tuple[Callable[[bytes], None], ...] = (fuzz_table, fuzz_file, fuzz_description, fuzz_value, fuzz_call)


def one_input(data: bytes) -> None:
    """The first byte chooses the target."""
    if len(data) < 2:
        return
    try:
        TARGETS[data[0] % len(TARGETS)](data[1:])
    except aclnn.AclnnError as error:
        if error.code == 561000:
            raise


def without_guidance(seconds: float, seeds: list[bytes]) -> None:
    draw, count, end = random.Random(0), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = bytearray(draw.choice(seeds) if draw.random() < 0.7 else draw.randbytes(draw.randint(2, 200)))
        for _ in range(draw.randint(0, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        one_input(bytes(data))
        count += 1
    print(f"{count} inputs, nothing found")
