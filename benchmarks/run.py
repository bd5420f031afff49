"""The whole benchmark: five processes per operator and column, rows as JSON, tables, plots. `aclnn bench` runs this."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import pages, rows, table
from benchmarks.measure import QUIET
from benchmarks.providers import BESIDE, IN_TURN, has
from benchmarks.shapes import COLUMNS, FURTHER, OPERATORS, shapes_of

ROOT = Path(__file__).parents[1]
BENCHMARKS = (*OPERATORS, *FURTHER)
NEUTRAL = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**28)}
"""Memory once taken stays: no provider pays for page faults where outputs are reused."""
PROMPT = {"MALLOC_MMAP_THRESHOLD_": str(2**16)}
"""Memory given back is gone, so that the next peak begins where it should."""


def main(arguments: list[str]) -> int:
    given = parsed(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    for benchmark in given.benchmarks or BENCHMARKS:
        for column in FURTHER.get(benchmark, COLUMNS):
            if column in given.columns.split(","):
                collect(benchmark, column, given)
    found = rows.read(given.output)
    print(table.text(found))
    if has("matplotlib"):
        from benchmarks import plot

        plot.draw(found, given.output)
    (given.output / "table.md").write_text(pages.whole_table(found), encoding="utf-8")
    if given.output == pages.RESULTS:
        pages.main([])
    return 0


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", nargs="*", default=[], metavar="benchmark", help=", ".join(BENCHMARKS))
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="per shape")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait for a quiet machine, per process")
    parser.add_argument("--output", type=Path, default=pages.RESULTS)
    parser.add_argument("--columns", default=",".join((*COLUMNS, "once")), help="what to measure")
    parser.add_argument("--only", default="", help="names of shapes, separated by commas")
    parser.add_argument("--dtypes", default="", help="dtypes, separated by commas")
    given = parser.parse_args(arguments)
    unknown = set(given.benchmarks) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark of {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    return given


def collect(benchmark: str, column: str, given: argparse.Namespace) -> None:
    """Writes results/<benchmark>-<column>.jsonl, row by row."""
    writer = rows.Writer(given.output / f"{benchmark}-{column}.jsonl")
    environment = os.environ | {"given": NEUTRAL, "growth": NEUTRAL, "memory": PROMPT}.get(column, {})
    hopeless: set[str] = set()
    for number, command in enumerate(commands(benchmark, column, given)):
        begun = time.perf_counter()
        print(f"{benchmark}, {column}, process {number + 1}", file=sys.stderr, flush=True)
        for row in printed([*command, "--alone", ",".join(sorted(hopeless))], environment):
            writer.write(row if "operator" in row else {"process": number, **row})
            if far_behind(row):
                hopeless.add(f"{row['dtype']}/{row['shape']}")
        print(f"  {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    writer.finish()


def printed(command: list[str], environment: dict[str, str]) -> Iterator[rows.Row]:
    """What a process prints, as it comes."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")


def far_behind(row: rows.Row) -> bool:
    """PyTorch takes long, and eight times as long as ours: one process has shown enough."""
    times = row.get("times", {})
    quiet = row.get("load", 0) < 2 * QUIET
    return quiet and "torch" in times and times["torch"][1] > max(0.2, 8 * times["aclnn"][1])


def commands(benchmark: str, column: str, given: argparse.Namespace) -> Iterator[list[str]]:
    """One per process."""
    common = [sys.executable, "-m", "benchmarks.one", benchmark, "--seconds", str(given.seconds), "--column", column]
    common += ["--patience", str(given.patience), "--dtypes", given.dtypes, "--only", given.only]
    if column == "memory":  # a process per shape: what a library keeps of one shape would serve the next
        for shape in [n for n in given.only.split(",") if n] or shapes_of(benchmark):
            alone = [*common, "--only", shape, "--providers"]
            yield from ([*alone, provider] for provider in IN_TURN if has_provider(provider))
    elif column == "growth":
        for threads in sorted({1, os.cpu_count() or 1}):
            yield [*common, "--threads", str(threads), "--providers", ",".join(IN_TURN)]
    elif column == "once":
        yield common
    else:
        yield from ([*common, "--providers", ",".join(IN_TURN)] for _ in range(given.processes))
        if column == "given":
            yield from ([*common, "--providers", p] for p in BESIDE.get(benchmark, ()) if has_provider(p))


def has_provider(name: str) -> bool:
    return name == "aclnn" or has(name.split(".")[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
