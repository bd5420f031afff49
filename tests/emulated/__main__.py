"""`python -m tests.emulated arm`: test_tiny, example cases, a core of the kernel tests and the wheel, emulated.

The first run fetches what it needs and compiles every kernel under emulation; both are kept in build/emulated.
`--setup` only fetches, and prints the Python that is emulated, to try things by hand.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.emulated.machines import BUILD, MACHINES, ROOT, Machine, python_of
from tests.emulated.wheel import install_and_try

CORE = (
    *("source/test_elements", "native/test_entry", "native/test_array_guards", "native/test_floating"),
    *("native/test_pool", "matmul/test_matrix", "elu/test_fast", "elu/test_forward", "lstm_cell/test_fast"),
    *(
        "conv_tbc/test_fast",
        "convolution/test_on_tiles",
        "convolution/test_strips",
        "convolution/test_direct",
        "lstm/test_fast",
        "lstm/test_forward",
    ),
)
_COMMAND = "from aclnn.cli import main; main()"


def main() -> int:
    about, more = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser("python -m tests.emulated", description=about, epilog=more)
    parser.add_argument("machines", nargs="+", choices=MACHINES, help="what to emulate, one after the other")
    parser.add_argument("--setup", action="store_true", help="fetch what is needed, run nothing")
    asked = parser.parse_args()
    worst = 0
    for machine in (MACHINES[name] for name in asked.machines):
        python = python_of(machine)
        if asked.setup:
            print(python)
        else:
            worst = max(worst, _tests_and_cases(machine, python))
    return worst


def _tests_and_cases(machine: Machine, python: Path) -> int:
    print(f"{machine.name}: {machine.instructions} ({machine.emulator} -cpu {machine.processor})", flush=True)
    out = BUILD / machine.name / "out"
    shutil.rmtree(out, ignore_errors=True)
    core = [f"tests/kernels/{name}.py" for name in CORE]
    tests = ["-m", "pytest", "-p", "no:cacheprovider", "-m", "not long and not torch"]
    steps = {
        "test_tiny": [*tests, "tests/test_tiny.py"],
        "the example cases": ["-c", _COMMAND, "run", "examples/cases.csv", "--check", "-o", str(out)],
        "the core of the kernel tests": [*tests, *core],
    }

    def run(name: str, command: list[str], where: Path) -> int:
        return _timed(machine, name, command, where)

    codes = [run(name, [str(python), *command], ROOT) for name, command in steps.items()]
    if machine.foreign:  # the others' wheel is that of this machine, and tests/meta/test_packaging.py installs it
        codes.append(install_and_try(machine, run))
    return max(*codes, _engines(machine, out / "results.csv"))


def _timed(machine: Machine, name: str, command: list[str], where: Path) -> int:
    """Runs a command in an environment in which no program of this machine is taken for one of the other."""
    began = time.monotonic()
    names = ("HOME", "LANG", "COLUMNS", "TERM", "TMPDIR")
    environment = {key: os.environ[key] for key in names if key in os.environ}
    environment |= {"ACLNN_CACHE_DIR": str(BUILD / machine.name / "cache"), "PATH": str(Path(command[0]).parent)}
    code = subprocess.run(command, cwd=where, env=environment).returncode
    print(f"{machine.name}: {name}: code {code}, {time.monotonic() - began:.0f} s", flush=True)
    return abs(code)  # below 0 if a signal has ended it


def _engines(machine: Machine, results: Path) -> int:
    """Whether the example cases ran on compiled kernels, but for a few."""
    with results.open(encoding="utf-8", newline="") as rows:
        on_numpy = [f"{row['op']} {row['case']}" for row in csv.DictReader(rows) if row["kernel"] == "numpy"]
    print(f"{machine.name}: {len(on_numpy)} cases ran on numpy, at most {machine.on_numpy} may: {', '.join(on_numpy)}")
    return int(len(on_numpy) > machine.on_numpy)


if __name__ == "__main__":
    sys.exit(main())
