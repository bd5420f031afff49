"""aclnn bench: how fast the operators are here, beside PyTorch and JAX."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from aclnn.base.status import invalid

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="elu, convolution, conv_tbc, lstm, lstm_cell, calls, training, golden, streams; none: all.",
    ),
]


def bench(
    names: Names = None,
    processes: Annotated[int, typer.Option(help="Processes per name: a ratio has its range over them.")] = 5,
    seconds: Annotated[float, typer.Option(help="Seconds per shape and process.")] = 0.4,
    patience: Annotated[float, typer.Option(help="Seconds to wait for a quiet machine, per process.")] = 20.0,
    columns: Annotated[str, typer.Option(help="What to measure.")] = "given,fresh,growth,memory,once",
    only: Annotated[str, typer.Option(help="Names of shapes, separated by commas; none: all.")] = "",
    dtypes: Annotated[str, typer.Option(help="Dtypes, separated by commas; none: all.")] = "",
    output: Annotated[Path, typer.Option(help="The folder of rows, tables and plots.")] = Path("benchmarks/results"),
    tune: Annotated[bool, typer.Option("--tune", help="Measure convolution layouts and write their table.")] = False,
) -> None:
    """Times the named shapes of benchmarks/shapes.toml: rows as JSON lines, tables, plots. Runs in a checkout."""
    here = Path.cwd()
    if not (here / "benchmarks" / "shapes.toml").is_file():
        raise invalid("bench runs in a checkout of aclnn-cpu, where benchmarks/shapes.toml is; this is not one.")
    sys.path.insert(0, str(here))
    if tune:
        importlib.import_module("benchmarks.tune").main([])
        return
    arguments = ["--processes", str(processes), "--seconds", str(seconds), "--patience", str(patience)]
    arguments += ["--columns", columns, "--only", only, "--dtypes", dtypes, "--output", str(output.resolve())]
    sys.exit(importlib.import_module("benchmarks.run").main([*(names or []), *arguments]))
