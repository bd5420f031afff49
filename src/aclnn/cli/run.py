"""`aclnn run`: a table of cases, or one operator on files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from aclnn import ops
from aclnn.base.status import invalid
from aclnn.cli.screen import print_table, progress
from aclnn.contract.cases import kept
from aclnn.contract.model import HIDDEN, Op
from aclnn.golden.casefile import save_case
from aclnn.golden.table import Row, parse, read_table
from aclnn.golden.trial import Trial, try_case
from aclnn.runtime import settings

_HEAD = ("op", "case", "dtype", "kernel", "ms", "error / allowed", "verdict")


def run(
    what: Annotated[str, typer.Argument(help="A table of cases (.csv), or an operator.", show_default=False)],
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", help="With an operator: name=value, the value a number or a .npy file. Repeatable."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Judge every result against the float64 reference.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="A folder to save inputs and results in.")] = None,
    product: Annotated[str | None, typer.Option(help="The product to check against (default Atlas A2).")] = None,
    engine: Annotated[str | None, typer.Option(help="auto, fast, numpy or reference.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random data.")] = 0,
) -> None:
    """Runs a table of cases, or one operator on files. Exit code 0: all fine; 1: a result is wrong; 2: bad input."""
    with settings.product(settings.current_product(product)), settings.engine(settings.current_engine(engine)):
        if what.lower().endswith(".csv"):
            raise typer.Exit(_run_table(Path(what), check, out, seed))
        _run_operator(ops.find(what), dict(_assignment(a) for a in arg or ()), check, out)


def _run_table(path: Path, check: bool, out: Path | None, seed: int) -> int:
    rows = read_table(path, settings.current_product())
    trials = []
    for row in progress(rows, rows, "running"):
        trial = try_case(row.case, check=check, seed=seed + row.line)
        if out is not None and trial.error is None:
            out.mkdir(parents=True, exist_ok=True)
            save_case(out / f"{row.line:03d}_{row.case.op.python}.npz", row.case.op, row.case.call, trial.arrays)
        trials.append((row, trial))
    print_table((_HEAD, [_cells(row, trial) for row, trial in trials]))
    return _summary(trials, out)


def _cells(row: Row, trial: Trial) -> tuple[str, ...]:
    error = f"{trial.worst:.3f}" if trial.judged else "-"
    took = f"{trial.milliseconds:.3f}" if trial.error is None else "-"
    return row.case.op.name, row.name, row.dtype, trial.kernel or "-", took, error, trial.verdict


def _summary(trials: list[tuple[Row, Trial]], out: Path | None) -> int:
    wrong = [(row, t) for row, t in trials if t.verdict in ("FAIL", "error")]
    for row, trial in wrong:
        detail = trial.error.message if trial.error else f"{trial.worst:.3g} times the allowed error"
        print(f"line {row.line} ({row.name}): {detail}")
    saved = f"; inputs and results are in {out}" if out is not None else ""
    print(f"{len(trials) - len(wrong)} passed, {len(wrong)} failed{saved}")
    return 1 if wrong else 0


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise invalid(f"--arg {text!r} is not of the form name=value.")
    return name, value


def _run_operator(op: Op, given: dict[str, str], check: bool, out: Path | None) -> None:
    from aclnn.runtime.operator import Binding

    known = {n: a.name for a in op.inputs if a.python != HIDDEN for n in (a.name, a.snake)}
    for name in given:
        if name not in known:
            shown = ", ".join(a.name for a in op.inputs)
            raise invalid(f"{op.name} has no argument {name!r}; its inputs are {shown}.")
    values = {known[name]: _argument(op, known[name], text) for name, text in given.items()}
    defaults = {a.name: a.default for a in op.inputs if a.default is not ...}
    _refuse_missing(op, {**defaults, **values})
    binding = Binding(op, {**defaults, **values}, None, settings.current_product(), settings.current_engine())
    arrays = dict(zip((a.name for a in op.tensors), binding.views(), strict=True))
    _finish(op, binding, arrays, check, out)


def _refuse_missing(op: Op, given: dict[str, Any]) -> None:
    needed = [a.name for a in op.inputs if not a.optional and a.when is None and a.python != HIDDEN]
    missing = [name for name in needed if name not in given]
    if missing:
        raise invalid(f"{op.name} also needs {', '.join(missing)}; give each as --arg name=value.")


def _finish(op: Op, binding: Any, arrays: dict[str, Any], check: bool, out: Path | None) -> None:
    from aclnn.golden.sound import judge
    from aclnn.runtime.executor import Executor

    given = kept(arrays, op)
    executor = Executor(binding.plan, binding.views())
    executor.run(np.empty(executor.workspace_size, np.uint8) if executor.workspace_size else None)
    judged = judge(op, binding.plan.call, arrays, given) if check else []
    for arg in op.outputs:
        for spec in binding.plan.call.specs(arg.name):
            print(f"{arg.name}: {spec.dtype} {list(spec.shape)} (kernel {executor.kernel})")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save_case(out / f"{op.python}.npz", op, binding.plan.call, arrays)
        print(f"saved {out / (op.python + '.npz')}")
    else:
        for arg in op.outputs:
            print(f"{arg.name} =\n{arrays[arg.name]}")
    for output in judged:
        print(f"{output.name}: {output.worst:.3f} of the allowed error, {'pass' if output.sound else 'FAIL'}")
    if any(not j.sound for j in judged):
        raise typer.Exit(1)


def _argument(op: Op, name: str, text: str) -> Any:
    kind = op.by_name[name].kind
    if kind == "tensor_list":
        return [_load(part) for part in text.split(",")]
    if kind == "tensor":
        return _load(text)
    value = parse(text)
    return (value,) if kind.endswith("_array") and not isinstance(value, tuple) else value


def _load(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise invalid(f"{path} cannot be read as a .npy file: {error}.") from None
