"""One process of a benchmark: times every provider on the shapes of one operator, and prints rows of JSON.

python -m benchmarks.one elu --column given --threads 2
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import aclnn
from aclnn.base import dtype as dtypes
from aclnn.base.dtype import DType
from benchmarks import cores, machine
from benchmarks.measure import Call, Patience, Timed
from benchmarks.providers import IN_TURN, has, made, serving
from benchmarks.shapes import COLUMNS, shapes_of


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operator")
    parser.add_argument("--column", choices=(*COLUMNS, "once"), default="given")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="names of shapes, separated by commas")
    parser.add_argument("--dtypes", default="", help="dtypes, separated by commas")
    parser.add_argument("--providers", default=",".join(IN_TURN))
    parser.add_argument("--seconds", type=float, default=0.4, help="per shape")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait for a quiet machine, in all")
    parser.add_argument("--alone", default="", help="dtype/shape where ours is timed alone, separated by commas")
    parser.add_argument("--no-limit", action="store_true", help="without a large product or a triad beside it")
    parser.add_argument(
        "--longest", type=float, default=math.inf, help="seconds: shapes that take us longer are left out"
    )
    given = parser.parse_args(arguments)
    given.providers = given.providers.split(",")
    if has("torch") and "jax" not in given.providers:
        import torch

        torch.set_num_threads(given.threads)
    if given.column == "c":  # a context would send every phase 1 through Python
        os.environ["ACLNN_NUM_THREADS"] = str(given.threads)
        run(given)
        return
    with aclnn.threads(given.threads):
        run(given)


def run(given: argparse.Namespace) -> None:
    """Prints what holds for the whole process, then a row per shape and dtype."""
    bench = importlib.import_module(f"benchmarks.bench_{given.operator}")
    facts = machine.facts() | {"column": given.column, "threads": given.threads}
    print(json.dumps(facts), flush=True)
    if given.column == "memory":  # libraries are loaded before
        smallest = next(iter(shapes_of(given.operator, growth=True).values()))
        memory(bench, smallest, dtypes.FLOAT32, given.providers)
    patience = Patience(given.patience)
    for name, shape, dtype in cases(bench, given):
        row: dict[str, Any] = {"operator": given.operator, "shape": name, "dtype": dtype.name}
        if given.column == "memory":
            row |= memory(bench, shape, dtype, given.providers)
        elif given.column == "once":
            row |= bench.once(shape)
        else:
            alone = f"{dtype.name}/{name}" in given.alone.split(",")
            serving.clear()
            calls = made(bench.makers(shape, dtype, given.column), ["aclnn"] if alone else given.providers)
            if not calls or ("aclnn" in calls and took(calls["aclnn"]) > given.longest):
                continue
            work = bench.work(shape, dtype)
            limited = given.column == "given" and "aclnn" in calls and not given.no_limit
            limit = machine.limit(work, dtype) if limited else None
            if limit is not None:
                row["limit"] = limit.work
                calls = _between(calls, limit.call)
            row |= times(calls, given.seconds, patience) | {"work": work, "kernel": " ".join(serving)}
        print(json.dumps(row), flush=True)
        print(f"  {name} {dtype.name}: {said(row)}", file=sys.stderr, flush=True)


def took(call: Call) -> float:
    """Seconds of a second call."""
    call()
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def cases(bench: Any, given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any], DType]]:
    """Growth and memory are shown in float32 alone unless others are asked for."""
    wanted = [n for n in given.only.split(",") if n]
    all_dtypes = ("float32",) if given.column in ("growth", "memory") else bench.DTYPES
    for name in given.dtypes.split(",") if given.dtypes else all_dtypes:
        dtype = dtypes.by_name(name)
        assert dtype is not None
        for shape_name, shape in shapes_of(given.operator, given.column == "growth").items():
            if not wanted or shape_name in wanted:
                yield shape_name, shape, dtype


def _between(calls: dict[str, Call], limit: Call) -> dict[str, Call]:
    """The limit takes its turn between ours and the others, so that it goes before both of them equally often."""
    return {"aclnn": calls["aclnn"], "limit": limit, **{n: c for n, c in calls.items() if n != "aclnn"}}


def times(calls: dict[str, Call], seconds: float, patience: Patience) -> dict[str, Any]:
    found, load = patience.compare(calls, seconds)
    of_each = {name: _short(timed) for name, timed in found.items()}
    return {"times": of_each, "load": round(load, 2), "apart": cores.apart()}


def _short(timed: Timed) -> list[float]:
    return [*(float(f"{value:.4g}") for value in timed[:3]), timed.readings]


def memory(bench: Any, shape: dict[str, Any], dtype: DType, providers: list[str]) -> dict[str, Any]:
    """By how many bytes this process grows, at most, while a provider makes three calls with fresh outputs."""
    (provider, call), *_ = made(bench.makers(shape, dtype, "fresh"), providers).items()
    peak = machine.Peak()
    for _ in range(3):
        call()
    return {"provider": provider, "peak": peak.grown()}


def said(row: dict[str, Any]) -> str:
    """A row as a line of progress."""
    if "times" not in row:
        seconds = f"{row['seconds']} s, " if "seconds" in row else ""
        return f"{seconds}{row['peak'] / 2**20:.0f} MiB {row.get('provider', '')}"
    (_, first), *others = row["times"].items()
    ratios = [f"{first[1] / timed[1]:.3g} of {name}" for name, timed in others if name != "limit"]
    apart = f", {row['apart']} ns apart" if row.get("apart") else ""
    return f"{', '.join([f'{1e3 * first[1]:.3f} ms', *ratios])}; others used {row['load']} cores{apart}"


if __name__ == "__main__":
    main(sys.argv[1:])
