"""`aclnn run`: a table of cases, or one operator on files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from aclnn import ops
from aclnn.base.status import AclnnError, invalid, ours
from aclnn.cases.batch import Options, Result, count, repro, run_table
from aclnn.cases.trial import BROKEN, ERROR, FAIL, PASS, RAN, SKIPPED
from aclnn.cli.describe import operator_names
from aclnn.cli.files import given_arguments
from aclnn.cli.screen import complain, print_table, progress, say
from aclnn.contract.cases import fill, kept, views
from aclnn.contract.model import HIDDEN, Op
from aclnn.golden import exits
from aclnn.golden.read.casefile import save_case
from aclnn.runtime import settings

_HEAD = ("op", "case", "dtype", "kernel", "ms", "error / allowed", "verdict")
_ARG_HELP = (
    "With an operator, and as often as needed: name=value, the value a number, true, false, numbers (1,1), a .npy "
    "file, or several (a.npy,b.npy)."
)
_MANY = 100  # rows; beyond, only what failed is listed


def run(
    what: Annotated[
        str,
        typer.Argument(
            help="A table of cases (.csv), or an operator.", show_default=False, autocompletion=operator_names
        ),
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", help=_ARG_HELP),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Judge every result against the float64 reference.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="A folder to save inputs and results in.")] = None,
    product: Annotated[str | None, typer.Option(help="The product to check against (default Atlas A2).")] = None,
    engine: Annotated[str | None, typer.Option(help="auto, fast, numpy or reference.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random data.")] = 0,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes that share the rows of a table.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run into the same folder stopped.")] = False,
    dump_on_fail: Annotated[
        bool, typer.Option("--dump-on-fail", help="Save only the cases that fail, not every one.")
    ] = False,
    line: Annotated[int | None, typer.Option(help="Run only the case on this line of the table.")] = None,
) -> None:
    """Runs a table of cases, or one operator: on files (--arg), or without any on random data of its own.

    Exit code 0: all fine; 1: a result is wrong, whatever else went wrong; 2: bad input, also of one case among many;
    3: a failure of our own; 130: interrupted.
    """
    with settings.product(settings.current_product(product)), settings.engine(settings.current_engine(engine)):
        if what.lower().endswith(".csv"):
            _refuse_strangers("a table of cases", {"--arg": arg})
            options = Options(check, out, seed, jobs, resume, dump_on_fail, line)
            raise typer.Exit(_run_table(Path(what), options))
        for_tables = {
            "--resume": resume,
            "--dump-on-fail": dump_on_fail,
            "--line": line,
            "--jobs": jobs > 1,
        }
        _refuse_strangers("an operator", for_tables)
        _refuse_strangers("an operator on files", {"--seed": arg and seed})
        op = ops.find(what)
        values = _from_files(op, arg) if arg else _example(op, seed)
        _run_operator(op, values, check, out)


def _refuse_strangers(what: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value:
            raise invalid(f"{name} has no meaning for {what}.")


def _run_table(path: Path, options: Options) -> int:
    total = count(path, options)
    results: list[Result] = []
    failure: AclnnError | None = None
    try:
        for result in progress(run_table(path, options), range(total), "running"):
            results.append(result)
    except KeyboardInterrupt:
        hint = "; --resume goes on from here" if options.out is not None else ""
        say(f"stopped after {len(results)} of {total} rows{hint}")
        return exits.INTERRUPTED
    except Exception as error:  # what is known already must not be lost with it
        failure = ours(error)
        complain(f"aclnn: {failure}")
    results.sort(key=lambda r: r.line)
    shown = results if total <= _MANY else [r for r in results if r.failed]
    if shown:
        print_table((_HEAD, [(r.op, r.case, r.dtype, r.kernel, r.ms, r.error, r.verdict) for r in shown]))
    return exits.worst([_summary(path, results, options), exits.of(failure.code if failure else 0)])


def _summary(path: Path, results: list[Result], options: Options) -> int:
    wrong = [r for r in results if r.failed]
    for result in wrong:
        say(f"line {result.line} ({result.case}): {result.detail}\n  again: {repro(path, result, options)}")
    saved = f"; results are in {options.out}" if options.out is not None else ""
    say(f"{_counts(results)}{saved}")
    return exits.worst(result.exit_code for result in results)


def _counts(results: list[Result]) -> str:
    """How many rows did what: only what was checked has passed or failed."""
    count = Counter(r.verdict for r in results)
    said = [f"{count[PASS]} passed, {count[FAIL]} failed"] if count[PASS] or count[FAIL] else []
    said += [f"{count[RAN]} ran, not checked"] if count[RAN] else []
    said += [f"{count[SKIPPED]} skipped: no output is asked for"] if count[SKIPPED] else []
    said += [f"{count[ERROR]} {'error' if count[ERROR] == 1 else 'errors'}"] if count[ERROR] else []
    said += [f"{count[BROKEN]} broken: our own failure"] if count[BROKEN] else []
    return "; ".join(said)


def _example(op: Op, seed: int) -> dict[str, Any]:
    """A small call with random data, as tests use it."""
    case = ops.case_maker(op)(product=settings.current_product())
    values = {**case.values, **views(fill(case, seed), op)}
    return {a.name: values[a.name] for a in op.inputs if a.python != HIDDEN}


def _from_files(op: Op, given: list[str]) -> dict[str, Any]:
    values = given_arguments(op, given)
    defaults = {a.name: a.default for a in op.inputs if a.default is not ...}
    _refuse_missing(op, {**defaults, **values})
    return {**defaults, **values}


def _run_operator(op: Op, values: dict[str, Any], check: bool, out: Path | None) -> None:
    from aclnn.runtime.operator import Binding

    binding = Binding(op, values, None, settings.current_product(), settings.current_engine())
    arrays = dict(zip((a.name for a in op.tensors), binding.views(), strict=True))
    _finish(op, binding, arrays, check, out)


def _refuse_missing(op: Op, given: dict[str, Any]) -> None:
    needed = [a.name for a in op.inputs if not a.optional and a.when is None and a.python != HIDDEN]
    missing = [name for name in needed if name not in given]
    if missing:
        raise invalid(f"{op.name} also needs {', '.join(missing)}; give each as --arg name=value.")


def _finish(op: Op, binding: Any, arrays: dict[str, Any], check: bool, out: Path | None) -> None:
    from aclnn.golden.judge.sound import judge
    from aclnn.runtime.executor import Executor

    given = kept(arrays, op)
    executor = Executor(binding.plan, binding.views())
    executor.run(np.empty(executor.workspace_size, np.uint8) if executor.workspace_size else None)
    judged = judge(op, binding.plan.call, arrays, given) if check else []
    for arg in op.outputs:
        for spec in binding.plan.call.specs(arg.name):
            say(f"{arg.name}: {spec.dtype} {list(spec.shape)} (kernel {executor.kernel})")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save_case(out / f"{op.python}.npz", op, binding.plan.call, arrays, given)
        say(f"saved {out / (op.python + '.npz')}")
    else:
        for arg in op.outputs:
            say(f"{arg.name} =\n{arrays[arg.name]}")
    for output in judged:
        say(f"{output.name}: {output.worst:.3f} of the allowed error, {'pass' if output.sound else 'FAIL'}")
    if any(not j.sound for j in judged):
        raise typer.Exit(1)
