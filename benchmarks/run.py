"""The whole benchmark: five processes per operator and column, rows as JSON, a table, plots. `aclnn bench` runs this."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import table
from benchmarks.providers import has
from benchmarks.shapes import OPERATORS, shapes_of

RESULTS = Path(__file__).parent / "results"
NEUTRAL = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**28)}
"""Memory once taken stays: no provider pays for page faults where outputs are reused."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=[], metavar="operator", help=", ".join(OPERATORS))
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="per shape")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait for a quiet machine, per shape")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--columns", default="given,fresh,growth,memory", help="what to measure")
    parser.add_argument("--only", default="", help="names of shapes, separated by commas")
    parser.add_argument("--dtypes", default="", help="dtypes, separated by commas")
    given = parser.parse_args(arguments)
    unknown = set(given.operators) - set(OPERATORS)
    if unknown:
        parser.error(f"there is no benchmark of {', '.join(sorted(unknown))}; choose from {', '.join(OPERATORS)}")
    given.output.mkdir(parents=True, exist_ok=True)
    for operator in given.operators or OPERATORS:
        for column in given.columns.split(","):
            collect(operator, column, given)
    rows = table.read(given.output)
    print(table.text(rows))
    (given.output / "table.md").write_text(table.markdown(rows), encoding="utf-8")
    if has("matplotlib"):
        from benchmarks import plot

        plot.draw(rows, given.output)
    return 0


def collect(operator: str, column: str, given: argparse.Namespace) -> None:
    """Writes results/<operator>-<column>.jsonl."""
    rows: list[dict[str, Any]] = []
    for process, command in enumerate(commands(operator, column, given)):
        print(f"{operator} {column} {process + 1}", file=sys.stderr, flush=True)
        environment = os.environ | (NEUTRAL if column in ("given", "growth") else {})
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        rows += [{**json.loads(line), "process": process} for line in ended.stdout.splitlines()]
    path = given.output / f"{operator}-{column}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def commands(operator: str, column: str, given: argparse.Namespace) -> Iterator[list[str]]:
    common = [sys.executable, "-m", "benchmarks.one", operator, "--seconds", str(given.seconds)]
    common += ["--patience", str(given.patience), "--dtypes", given.dtypes]
    if column == "memory":
        for shape in shapes_of(operator):
            for provider in ("aclnn", "torch"):
                dtype = given.dtypes or "float32"
                yield [*common, "--column", column, "--only", shape, "--provider", provider, "--dtypes", dtype]
    elif column == "growth":
        for threads in (1, os.cpu_count() or 1):
            yield [*common, "--column", "given", "--growth", "--threads", str(threads)]
    else:
        for _ in range(given.processes):
            yield [*common, "--column", column, "--only", given.only]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
