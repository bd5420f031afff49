"""`aclnn run`: a table of cases, or one operator on files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from aclnn import ops
from aclnn.base import exit_codes
from aclnn.base.language import Text
from aclnn.base.status import AclnnError, invalid, ours
from aclnn.cases.batch import Options, Result, count, repro, run_table
from aclnn.cases.trial import BROKEN, ERROR, FAIL, PASS, RAN, SKIPPED
from aclnn.cli import options as shared
from aclnn.cli.files import given_arguments
from aclnn.cli.screen import print_table, progress, refuse, say, tell
from aclnn.contract.cases import fill, kept, views
from aclnn.contract.model import HIDDEN, Op
from aclnn.golden.judge.sound import judge
from aclnn.golden.read.casefile import save_case
from aclnn.runtime import settings
from aclnn.runtime.executor import Executor
from aclnn.runtime.operator import Binding

_HEAD = (
    Text("op", "算子"),
    Text("case", "用例"),
    Text("dtype", "数据类型"),
    Text("kernel", "内核"),
    Text("ms", "毫秒"),
    Text("error / allowed", "误差/允许"),
    Text("verdict", "判定"),
)
_VERDICTS = {
    PASS: Text("pass", "通过"),
    FAIL: Text("FAIL", "不通过"),
    RAN: Text("ran", "已执行"),
    SKIPPED: Text("skipped", "跳过"),
    ERROR: Text("error", "错误"),
    BROKEN: Text("broken", "内部错误"),
}
_ARG_HELP = (
    "With an operator, and as often as needed: name=value, the value a number, true, false, numbers (1,1), a .npy "
    "file, or several (a.npy,b.npy)."
)
_MANY = 100  # rows; beyond, only what failed is listed


def run(
    what: Annotated[
        str,
        typer.Argument(
            help="A table of cases (.csv), or an operator.",
            metavar="WHAT",
            show_default=False,
            autocompletion=shared.operator_names,
        ),
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", help=_ARG_HELP),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Judge every result against the float64 reference.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="A folder to save inputs and results in.")] = None,
    product: shared.Product = None,
    engine: shared.Engine = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random data.")] = 0,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes that share the rows of a table.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run into the same folder stopped.")] = False,
    dump_on_fail: Annotated[
        bool, typer.Option("--dump-on-fail", help="Save only the cases that fail, not every one.")
    ] = False,
    line: Annotated[int | None, typer.Option(help="Run only the case on this line of the table.")] = None,
    lang: shared.Lang = None,
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
        _make_folder(out)
        _run_operator(op, values, check, out)


def _refuse_strangers(what: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value:
            raise invalid(f"{name} has no meaning for {what}.")


def _make_folder(out: Path | None) -> None:
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise invalid(f"results cannot be written to {out}: {error}.") from None


def _run_table(path: Path, options: Options) -> int:
    total = count(path, options)
    results: list[Result] = []
    failure: AclnnError | None = None
    try:
        for result in progress(run_table(path, options), total, Text("running", "执行中").say()):
            results.append(result)
    except KeyboardInterrupt:
        hint = "; --resume goes on from here" if options.out is not None else ""
        tell(f"stopped after {len(results)} of {total} rows{hint}")
        return exit_codes.INTERRUPTED
    except Exception as error:  # what is known already must not be lost with it
        failure = ours(error)
        refuse(failure)
    results.sort(key=lambda r: r.line)
    shown = results if total <= _MANY else [r for r in results if r.failed]
    if shown:
        _print_results(shown)
    if failure and not results:  # nothing ran, and nothing was written
        return exit_codes.of(failure.code)
    return exit_codes.worst([_summary(path, results, options), exit_codes.of(failure.code if failure else 0)])


def _print_results(shown: list[Result]) -> None:
    head = tuple(name.say() for name in _HEAD)
    rows: list[tuple[str, ...]] = [(r.op, r.case, r.dtype, r.kernel, r.ms, r.error, _verdict(r.verdict)) for r in shown]
    print_table((head, rows), right=(4, 5))


def _verdict(word: str) -> str:
    return _VERDICTS[word].say() if word in _VERDICTS else word  # a results file of an earlier run may say anything


def _summary(path: Path, results: list[Result], options: Options) -> int:
    wrong = [r for r in results if r.failed]
    for result in wrong:
        tell(f"line {result.line} ({result.case}): {result.detail}")
        say(f"  {Text('again: ', '重新执行：').say()}{repro(path, result, options)}")
    where = Text(f"; results are in {options.out}", f"；结果在{options.out}").say() if options.out is not None else ""
    tell(f"{_counts(results)}{where}")
    return exit_codes.worst(result.exit_code for result in results)


def _counts(results: list[Result]) -> str:
    """How many rows did what: only what was checked has passed or failed."""
    count = Counter(r.verdict for r in results)
    errors = "error" if count[ERROR] == 1 else "errors"
    said = [Text(f"{count[PASS]} passed, {count[FAIL]} failed", f"{count[PASS]}个通过，{count[FAIL]}个不通过")]
    said = said if count[PASS] or count[FAIL] else []
    others = {
        RAN: Text(f"{count[RAN]} ran, not checked", f"{count[RAN]}个已执行，未核对"),
        SKIPPED: Text(f"{count[SKIPPED]} skipped: no output is asked for", f"{count[SKIPPED]}个跳过：没有要求输出"),
        ERROR: Text(f"{count[ERROR]} {errors}", f"{count[ERROR]}个错误"),
        BROKEN: Text(f"{count[BROKEN]} broken: our own failure", f"{count[BROKEN]}个内部错误：本工具自身的问题"),
    }
    said += [text for verdict, text in others.items() if count[verdict]]
    return Text("; ", "；").say().join(text.say() for text in said)


def _example(op: Op, seed: int) -> dict[str, Any]:
    """A small call with random data, as tests use it."""
    case = ops.case_maker(op)(device=settings.current_product())
    values = {**case.values, **views(fill(case, seed), op)}
    return {a.name: values[a.name] for a in op.inputs if a.python != HIDDEN}


def _from_files(op: Op, given: list[str]) -> dict[str, Any]:
    defaults = {a.name: a.default for a in op.inputs if a.default is not ...}
    values = {**defaults, **given_arguments(op, given)}
    needed = [a.name for a in op.inputs if not a.optional and a.when is None and a.python != HIDDEN]
    missing = [name for name in needed if name not in values]
    if missing:
        raise invalid(f"{op.name} also needs {', '.join(missing)}; give each as --arg name=value.")
    return values


def _run_operator(op: Op, values: dict[str, Any], check: bool, out: Path | None) -> None:
    binding = Binding(op, values, None, settings.current_product(), settings.current_engine())
    arrays = dict(zip((a.name for a in op.tensors), binding.views(), strict=True))
    given = kept(arrays, op)
    executor = Executor(binding.plan, binding.views())
    executor.run(np.empty(executor.workspace_size, np.uint8) if executor.workspace_size else None)
    judged = judge(op, binding.plan.call, arrays, given) if check else []
    for arg in op.outputs:
        for spec in binding.plan.call.specs(arg.name):
            kernel = Text(f" (kernel {executor.kernel})", f"（内核{executor.kernel}）").say()
            say(f"{arg.name}: {spec.dtype} {list(spec.shape)}{kernel}")
    if out is not None:
        save_case(out / f"{op.python}.npz", op, binding.plan.call, arrays, given)
        say(f"{Text('saved ', '已保存').say()}{out / (op.python + '.npz')}")
    else:
        for arg in op.outputs:
            say(f"{arg.name} =\n{arrays[arg.name]}")
    for output in judged:
        tell(f"{output.name}: {output.worst:.3f} of the allowed error, {'pass' if output.sound else 'FAIL'}")
    if any(not j.sound for j in judged):
        raise typer.Exit(1)
