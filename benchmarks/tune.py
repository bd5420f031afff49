"""Measures convolution layouts and writes the table of kernels/convolution_layouts.py. `make tune` runs this.

Every shape is run in every pair of layouts, turn by turn; the best time counts, since load of other processes only ever
adds. A class of shapes gets the pair with the smallest geometric mean of (time ÷ best time of the shape).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

import aclnn
from aclnn.base.dtype import FLOAT32
from aclnn.kernels import convolution_layouts
from aclnn.kernels.convolution_layouts import Layouts, machine_of, names_of
from aclnn.kernels.convolution_program import OF_DATA, OF_WEIGHTS, PRODUCTS, Problem
from benchmarks.shapes import convolution_arguments, shapes_of
from benchmarks.tune_shapes import SHAPES

PAIRS: list[Layouts] = list(itertools.product(OF_DATA, OF_WEIGHTS))
Times = dict[Layouts, float]


def measure(shape: dict[str, Any], part: str, seconds: float = 1.0) -> tuple[Problem, Times] | None:
    """The problem of a shape, and the best time of every pair of layouts; None if its class is not wanted."""
    arguments = convolution_arguments(shape, FLOAT32)
    plans = {}
    for pair in PAIRS:
        problem, plan = _planned(arguments, pair)
        if part not in names_of(problem)[0]:
            return None
        if problem.is_pointwise or PRODUCTS not in pair:
            plans[pair] = plan, np.empty(plan.workspace_size, np.uint8)
    return problem, _times(plans, seconds)


def _planned(arguments: tuple[Any, ...], pair: Layouts) -> tuple[Problem, Any]:
    """A plan with a pair of layouts, whatever the table says."""
    seen = []

    def choose(problem: Problem) -> Layouts:
        seen.append(problem)
        return pair

    aclnn.cache_clear()
    convolution_layouts.choose, kept = choose, convolution_layouts.choose
    try:
        plan = aclnn.convolution_backward.plan(*arguments, engine="fast", repeatable=True)
    finally:
        convolution_layouts.choose = kept
    return seen[0], plan


def _times(plans: dict[Layouts, Any], seconds: float) -> Times:
    for plan, workspace in plans.values():
        plan.run(workspace)  # the first run pays for the pages of its workspace
    best = dict.fromkeys(plans, math.inf)
    start = time.perf_counter()
    rounds = 0
    while rounds < 6 or (time.perf_counter() - start < seconds and rounds < 200):
        for pair, (plan, workspace) in plans.items():
            if rounds >= 3 and best[pair] > 2 * min(best.values()):
                continue  # out of the race
            begun = time.perf_counter()
            plan.run(workspace)
            best[pair] = min(best[pair], time.perf_counter() - begun)
        rounds += 1
    return best


def chosen(measured: Iterable[tuple[Problem, Times]]) -> dict[str, Layouts]:
    """The best pair of every class that has a member."""
    losses: dict[str, dict[Layouts, float]] = {}
    for problem, times in measured:
        for name in dict.fromkeys(names_of(problem)):
            sums, best = losses.get(name, dict.fromkeys(times, 0.0)), min(times.values())
            losses[name] = {pair: loss + math.log(times[pair] / best) for pair, loss in sums.items() if pair in times}
    return {name: min(sums, key=lambda pair: sums[pair]) for name, sums in sorted(losses.items())}


def report(measured: list[tuple[Problem, Times]], title: str) -> None:
    """What the table costs against the best layout of each shape, and gains against leaving the choice to oneDNN."""
    loss = gain = 0.0
    for problem, times in measured:
        taken = times[convolution_layouts.choose(problem)]
        loss += math.log(taken / min(times.values()))
        gain += math.log(taken / times["any", "any"])
    count = len(measured)
    print(f"{title}: {math.exp(loss / count):.3f} of the best layout's time, {math.exp(gain / count):.3f} of `any`")


def one_machine(threads: int, part: str) -> dict[str, dict[str, Layouts]]:
    """The table of this machine, measured anew for the classes that have `part` in their names."""
    machine, known = machine_of(threads), convolution_layouts._table()
    with aclnn.threads(threads):
        measured = _measured(SHAPES, part)
        known[machine] = dict(sorted({**(known.get(machine, {}) if part else {}), **chosen(measured)}.items()))
        print(f"\n{machine}", file=sys.stderr)
        report(measured, "measured shapes")
        report(_measured(shapes_of("convolution").values(), part), "other shapes   ")
    return {machine: known[machine]}


def _measured(shapes: Iterable[dict[str, Any]], part: str) -> list[tuple[Problem, Times]]:
    found = []
    for i, shape in enumerate(shapes, 1):
        print(f"\rshape {i}", end="", file=sys.stderr, flush=True)
        found.append(measure(shape, part))
    return [one for one in found if one is not None]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, help="measure here, with this many threads, and print the table")
    parser.add_argument("--part", default="", help="only classes with this in their names; the others stay as they are")
    given = parser.parse_args(arguments)
    if given.threads:
        print(json.dumps(one_machine(given.threads, given.part)))
        return
    table: dict[str, dict[str, Layouts]] = {}
    for isa, threads in itertools.product(("DEFAULT", "AVX2"), (1, os.cpu_count() or 1)):
        command = [sys.executable, "-m", "benchmarks.tune", "--threads", str(threads), "--part", given.part]
        environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        *said, last = ended.stdout.splitlines()
        print("\n".join(said))
        table.update(json.loads(last))
    convolution_layouts.TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
