"""Which layout oneDNN computes a convolution's gradients in: a table, measured by `make tune`, judged on other shapes.

Layouts differ in bits, so nothing is timed at run time: the choice is a function of the problem, the number of threads
and the instruction set.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from aclnn.base.dtype import FLOAT32
from aclnn.kernels import onednn
from aclnn.kernels.convolution_program import ANY, Problem

TABLE = Path(__file__).with_suffix(".json")

Layouts = tuple[str, str]
"""Inside, for gradInput and for gradWeight."""


def choose(problem: Problem) -> Layouts:
    """The layouts of the nearest class of shapes that was measured. bfloat16 arithmetic leaves the choice to oneDNN."""
    if problem.dtype is not FLOAT32:
        return ANY, ANY
    measured = _table().get(machine_of(problem.threads), {})
    for name in names_of(problem):
        if name in measured:
            return measured[name]
    return ANY, ANY


def machine_of(threads: int) -> str:
    return f"{'avx512' if onednn.library().has_avx512 else 'avx2'}, {'one thread' if threads == 1 else 'threads'}"


def names_of(problem: Problem) -> list[str]:
    """The classes a problem belongs to, the narrowest first."""
    axes = len(problem.window.stride)
    kernel = problem.weight.dims[-axes:]
    before, after = problem.wide.dims[1] // problem.groups, problem.narrow.dims[1] // problem.groups
    if problem.groups > 1:  # oneDNN computes 16 channels at a time
        channels = "depthwise" if before == 1 else "narrow groups" if min(before, after) < 16 else "grouped"
    else:
        channels = "few channels" if min(before, after) < 8 else "dense"
    taps = "1 tap" if max(kernel) == 1 else "3 taps" if max(kernel) <= 3 else "more taps"
    step = "strided" if max(problem.window.stride) > 1 else "unit stride"
    turned = ", transposed" if problem.transposed else ""
    dilated = ", dilated" if max(problem.window.dilation) > 1 else ""
    small = ", small" if max(problem.narrow.dims[2:]) <= 8 else ""
    plain = f"{channels}, {taps}, {step}{turned}"
    return [
        f"{plain}, {axes}-D{dilated}{small}",
        f"{plain}, {axes}-D{dilated}",
        f"{plain}, {axes}-D",
        plain,
        f"{channels}, {taps}, {step}",
    ]


@cache
def _table() -> dict[str, dict[str, Layouts]]:
    raw = json.loads(TABLE.read_text(encoding="utf-8"))
    return {machine: {name: (a, b) for name, (a, b) in classes.items()} for machine, classes in raw.items()}
