"""aclnn bench: how fast the operators are here, beside PyTorch and JAX."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from aclnn.base.status import invalid

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="elu, convolution, unseen, conv_tbc, lstm, lstm_cell, calls, training, golden, streams, busy; none: all.",
    ),
]


def bench(
    names: Names = None,
    isa: Annotated[
        str, typer.Option(help="avx2, native, or both with a comma; none: both where there is AVX-512.")
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="About half an hour for two ISAs; says what it leaves out.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that was interrupted, as it was asked for.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes per name: a ratio has its range over them.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Seconds per shape and process.")] = None,
    patience: Annotated[float | None, typer.Option(help="Seconds to wait for a quiet machine, per process.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Of given, fresh, out, torch, c, forward, step, growth, memory, once; none: all."),
    ] = None,
    only: Annotated[str, typer.Option(help="Names of shapes, separated by commas; none: all.")] = "",
    dtypes: Annotated[str, typer.Option(help="Dtypes, separated by commas; none: all.")] = "",
    output: Annotated[Path, typer.Option(help="Gets a folder of rows, tables and plots per machine and ISA.")] = Path(
        "benchmarks/results"
    ),
) -> None:
    """Times the named shapes of benchmarks/shapes.toml: rows as JSON lines, tables, plots. Runs in a checkout."""
    _refuse_times(seconds, patience)
    here = Path.cwd()
    if not (here / "benchmarks" / "shapes.toml").is_file():
        raise invalid("bench runs in a checkout of aclnn-cpu, where benchmarks/shapes.toml is; this is not one.")
    sys.path.insert(0, str(here))
    arguments = ["--isa", isa, "--only", only, "--dtypes", dtypes, "--output", str(output.resolve())]
    asked = {"--processes": processes, "--seconds": seconds, "--patience": patience, "--columns": columns}
    arguments += [text for name, value in asked.items() if value is not None for text in (name, str(value))]
    arguments += ["--quick"] if quick else []
    arguments += ["--resume"] if resume else []
    sys.exit(importlib.import_module("benchmarks.run").main([*(names or []), *arguments]))


def _refuse_times(seconds: float | None, patience: float | None) -> None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise invalid(f"--seconds is {seconds:g}; it must be a number above 0.")
    if patience is not None and not 0 <= patience < math.inf:
        raise invalid(f"--patience is {patience:g}; it must be a number that is not negative.")
