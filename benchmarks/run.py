"""The whole benchmark: five processes per operator and column, rows as JSON, tables, plots. `aclnn bench` runs this."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import c_door, machine, pages, rows, table
from benchmarks.measure import LONG, QUIET
from benchmarks.providers import BESIDE, IN_TURN, has
from benchmarks.shapes import COLUMNS, FURTHER, OPERATORS, shapes_of

ROOT = Path(__file__).parents[1]
BENCHMARKS = tuple(dict.fromkeys((*OPERATORS, *FURTHER)))
NEUTRAL = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**28)}
"""Memory once taken stays: no provider pays for page faults where outputs are reused."""
PROMPT = {"MALLOC_MMAP_THRESHOLD_": str(2**16)}
"""Memory given back is gone, so that the next peak begins where it should."""
MEMORY = dict.fromkeys(("given", "c", "forward", "growth"), NEUTRAL) | {"memory": PROMPT}
_AVX2 = dict.fromkeys(("ACLNN_MAX_ISA", "ATEN_CPU_CAPABILITY"), "avx2") | {"OPENBLAS_CORETYPE": "Haswell"}
_AVX2 |= dict.fromkeys(("ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"), "AVX2")
LIMITS: dict[str, dict[str, str]] = {"native": {}, "avx2": _AVX2 | {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}}
"""Everybody is held to the same instructions."""
QUICK = ["--seconds", "0.1", "--patience", "5", "--columns", "given,fresh,out,torch,c,forward,step,once"]
OTHER_DOORS = 2  # processes of a quick run for all but given outputs, calls and programs
DOORS = ("fresh", "out", "torch", "c")  # what they cost is microseconds: of long calls, outputs given say it all
LEFT_OUT = """quick: 0.1 seconds per shape instead of 0.4, and of calls of more than 60 ms three readings, five where
they are close; five processes for outputs given, calls and a training step, two for all other columns. Left out: 16-bit
dtypes (but of elu and lstm_cell with outputs given), calls of more than 60 ms with fresh outputs, with out=, with torch
tensors and from C, shares of the limit, torch.compile, JAX, growth, memory, golden."""
UNFINISHED = (
    "unfinished.json"  # beside the folders: when a run began, how it was asked for, and how many processes ended
)
Process = tuple[str, str, str, int, list[str]]  # instruction set, benchmark, column, its number and command


def main(arguments: list[str]) -> int:
    given = parsed(arguments)
    state = given.output / UNFINISHED
    begun, ended = time.strftime("%Y-%m-%dT%H:%M:%S"), 0
    if given.resume and state.is_file():
        begun, arguments, ended = json.loads(state.read_text(encoding="utf-8"))
        given = parsed(arguments)
    if given.quick:
        print(LEFT_OUT, file=sys.stderr)
    levels = {isa: isa if isa == "avx2" else machine.level() for isa in given.isa}
    folders = {isa: given.output / f"{machine.slug()}-{level}" for isa, level in levels.items()}
    processes = list(planned(given))
    if any(column == "step" or benchmark == "training" for _, benchmark, column, *_ in processes):
        build_node()
    failed = collect(processes, folders, begun, ended, lambda count: _note(state, [begun, arguments, count]))
    state.unlink(missing_ok=True)
    for folder in folders.values():
        found = rows.read(folder)
        print(f"\n{folder.name}\n{table.text(found)}")
        if has("matplotlib"):
            from benchmarks import plot

            plot.draw(found, folder)
    if given.output == pages.RESULTS:
        pages.main([])
    print(*failed, sep="\n", file=sys.stderr)
    return 1 if failed else 0


def build_node() -> None:
    """Training steps are timed as `aclnn.torch.build()` makes them, where it can."""
    command = [sys.executable, "-c", "import aclnn.torch; aclnn.torch.build()"]
    if has("torch") and subprocess.run(command, capture_output=True).returncode != 0:
        print("aclnn.torch.build() failed: training steps are timed without it", file=sys.stderr)


def _note(state: Path, told: list[object]) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    part = state.with_suffix(".part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.replace(state)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", nargs="*", default=[], metavar="benchmark", help=", ".join(BENCHMARKS))
    parser.add_argument("--isa", default="", help="avx2, native, or both: avx2,native; none: what there is")
    parser.add_argument("--quick", action="store_true", help="about half an hour for two instruction sets")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run that was interrupted, as it was asked for"
    )
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="per shape")
    parser.add_argument("--patience", type=float, default=20, help="seconds to wait for a quiet machine, per process")
    parser.add_argument("--output", type=Path, default=pages.RESULTS)
    parser.add_argument("--columns", default=",".join((*COLUMNS, "once")), help="what to measure")
    parser.add_argument("--only", default="", help="names of shapes, separated by commas")
    parser.add_argument("--dtypes", default="", help="dtypes, separated by commas")
    given = parser.parse_args([*(QUICK if "--quick" in arguments else ()), *arguments])
    given.isa = given.isa.split(",") if given.isa else ["avx2", "native"] if machine.level() == "avx512" else ["native"]
    if unknown := _unknown(given):
        parser.error(unknown)
    return given


def _unknown(given: argparse.Namespace) -> str:
    """What was asked for and is not there, in a sentence."""
    shapes = [
        n
        for b in set(given.benchmarks or BENCHMARKS) & set(BENCHMARKS)
        for growth in (False, True)
        for n in shapes_of(b, growth)
    ]
    for kind, asked, known in (
        ("benchmark of", given.benchmarks, BENCHMARKS),
        ("limit", given.isa, LIMITS),
        ("column", given.columns.split(","), (*COLUMNS, "once")),
        ("shape", [n for n in given.only.split(",") if n], shapes),
        ("dtype", [n for n in given.dtypes.split(",") if n], ("float32", "float16", "bfloat16")),
    ):
        if unknown := set(asked) - set(known):
            choices = ", ".join(dict.fromkeys(known))
            return f"there is no {kind} {', '.join(sorted(unknown))}; choose from {choices}"
    return ""


def planned(given: argparse.Namespace) -> Iterator[Process]:
    """Every process, in their order: what the first table shows comes first."""
    for column in (c for c in (*COLUMNS, "once") if c in given.columns.split(",") and (c != "c" or c_door.is_here())):
        for isa in given.isa:
            for benchmark in given.benchmarks or BENCHMARKS:
                if column in FURTHER.get(benchmark, COLUMNS) and not (given.quick and benchmark == "golden"):
                    for number, command in enumerate(commands(benchmark, column, given)):
                        yield isa, benchmark, column, number, command


def collect(
    processes: list[Process],
    folders: dict[str, Path],
    begun: str = "",
    ended: int = 0,
    note: Callable[[int], None] = lambda count: None,
) -> list[str]:
    """Writes <folder>/<benchmark>-<column>.jsonl, row by row, without the processes that ended before; says which
    failed, and notes how many have ended."""
    writers: dict[Path, rows.Writer] = {}
    hopeless: dict[Path, set[str]] = {}
    took: dict[tuple[str, str], list[float]] = {}
    failed: list[str] = []
    for index, (isa, benchmark, column, number, command) in enumerate(processes):
        if index < ended:
            continue
        path = folders[isa] / f"{benchmark}-{column}.jsonl"
        title = f"{index + 1} of {len(processes)}, {time_left(processes[index:], took)}: {folders[isa].name}"
        print(f"{title}, {benchmark}, {column}, process {number + 1}", file=sys.stderr, flush=True)
        folders[isa].mkdir(parents=True, exist_ok=True)
        writer = writers[path] if path in writers else writers.setdefault(path, rows.Writer(path, begun, number))
        alone = hopeless.setdefault(path, set())
        environment, start = os.environ | MEMORY.get(column, {}) | LIMITS[isa], time.perf_counter()
        for row in printed([*command, "--alone", ",".join(sorted(alone))], environment, failed):
            writer.write(row if "operator" in row else {"process": number, **row})
            if far_behind(row):
                alone.add(f"{row['dtype']}/{row['shape']}")
        took.setdefault((benchmark, column), []).append(time.perf_counter() - start)
        note(index + 1)
    return failed


def time_left(coming: list[Process], took: dict[tuple[str, str], list[float]]) -> str:
    """From the processes of the same kind that have ended, else from all."""
    if not took:
        return "time left unknown"
    anything = [seconds for of_kind in took.values() for seconds in of_kind]
    seconds = sum(statistics.mean(took.get(process[1:3], anything)) for process in coming)
    return f"about {seconds / 60:.0f} minutes left"


def printed(command: list[str], environment: dict[str, str], failed: list[str]) -> Iterator[rows.Row]:
    """What a process prints, as it comes. One that fails does not end the others."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode != 0:
        failed.append(f"{' '.join(command)} ended with {process.returncode}")


def far_behind(row: rows.Row) -> bool:
    """PyTorch takes long, and eight times as long as ours: one process has shown enough."""
    times = row.get("times", {})
    quiet = row.get("load", 0) < 2 * QUIET
    return quiet and "torch" in times and times["torch"][1] > max(0.2, 8 * times["aclnn"][1])


def commands(benchmark: str, column: str, given: argparse.Namespace) -> Iterator[list[str]]:
    """One per process."""
    common = [sys.executable, "-m", "benchmarks.one", benchmark, "--seconds", str(given.seconds), "--column", column]
    common += ["--patience", str(given.patience), "--dtypes", dtypes(benchmark, column, given), "--only", given.only]
    common += ["--no-limit"] if given.quick else []
    common += ["--longest", str(LONG)] if given.quick and column in DOORS else []
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
        fewer = given.quick and column != "given" and benchmark not in FURTHER
        count = min(given.processes, OTHER_DOORS) if fewer else given.processes
        yield from ([*common, "--providers", ",".join(IN_TURN)] for _ in range(count))
        if column == "given" and not given.quick:
            yield from ([*common, "--providers", p] for p in BESIDE.get(benchmark, ()) if has_provider(p))


def dtypes(benchmark: str, column: str, given: argparse.Namespace) -> str:
    """Those that were asked for; nothing: all."""
    fewer = given.quick and (column != "given" or benchmark not in ("elu", "lstm_cell"))  # PyTorch takes minutes there
    return given.dtypes or ("float32" if fewer else "")


def has_provider(name: str) -> bool:
    return name == "aclnn" or has(name.split(".")[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
