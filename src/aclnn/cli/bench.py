"""aclnn bench: how fast the operators are here, beside PyTorch and JAX."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import typer

from aclnn.base.status import invalid


def bench(
    operators: list[str] = typer.Argument(None, help="elu, convolution, conv_tbc, lstm, lstm_cell; none: all of them."),
    processes: int = typer.Option(5, help="Processes per operator: a row has the range of its ratio over them."),
    seconds: float = typer.Option(1.5, help="Seconds per shape and process."),
    patience: float = typer.Option(20.0, help="Seconds to wait for a quiet machine, per shape."),
    columns: str = typer.Option("given,fresh,growth,memory", help="What to measure."),
    only: str = typer.Option("", help="Names of shapes, separated by commas."),
    dtypes: str = typer.Option("", help="Dtypes, separated by commas."),
    output: Path = typer.Option(None, help="Where rows, table and plots go; benchmarks/results by default."),
    tune: bool = typer.Option(False, "--tune", help="Measure convolution layouts instead, and write their table."),
) -> None:
    """Times the named shapes of benchmarks/shapes.toml: rows as JSON lines, a table, plots."""
    here = Path.cwd()
    if not (here / "benchmarks" / "shapes.toml").is_file():
        raise invalid("bench runs in a checkout of aclnn-cpu, where benchmarks/shapes.toml is; this is not one.")
    sys.path.insert(0, str(here))
    if tune:
        importlib.import_module("benchmarks.tune").main([])
        return
    arguments = [*(operators or []), "--processes", str(processes), "--seconds", str(seconds)]
    arguments += ["--patience", str(patience), "--columns", columns, "--only", only, "--dtypes", dtypes]
    arguments += ["--output", str(output)] if output else []
    sys.exit(importlib.import_module("benchmarks.run").main(arguments))
