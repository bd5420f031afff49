"""Running many rows: results appended as they come, so that a stopped run goes on where it was."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from aclnn.base import exit_codes
from aclnn.base.device import DEFAULT
from aclnn.base.files import whole_file
from aclnn.base.status import invalid
from aclnn.base.text import cell
from aclnn.cases.draw import whole_number
from aclnn.cases.table import Row, read_table
from aclnn.cases.trial import BROKEN, ERROR, FAIL, RAN, STEADY, Trial, judge_saved, try_case, verdict_of, worst_of
from aclnn.golden.judge.sound import Judged
from aclnn.golden.processes import in_processes
from aclnn.golden.read import untrusted
from aclnn.golden.read.casefile import save_case
from aclnn.runtime import settings

RESULTS = "results.csv"
MANY = 50  # rows; beyond, each runs once


@dataclass(frozen=True)
class Options:
    """How the rows of a table are run."""

    check: bool = False
    out: Path | None = None
    seed: int = 0
    jobs: int = 1
    resume: bool = False
    dump_on_fail: bool = False  # save the cases that fail, not every one
    line: int | None = None  # only this line of the table


@dataclass(frozen=True)
class Result:
    """What a row did, as a line of the results file."""

    line: int
    op: str
    case: str
    dtype: str
    kernel: str
    ms: str
    error: str
    verdict: str
    detail: str
    key: str

    @property
    def failed(self) -> bool:
        return self.exit_code != exit_codes.RIGHT

    @property
    def exit_code(self) -> int:
        return _CODES.get(self.verdict, exit_codes.RIGHT)


_CODES = {FAIL: exit_codes.MISMATCH, ERROR: exit_codes.BAD_INPUT, BROKEN: exit_codes.OURS}


def run_table(path: Path, options: Options) -> Iterator[Result]:
    """The results of a table's rows, as they are there; those of an earlier run first if it is resumed."""
    rows = _chosen(path, options)
    earlier = _earlier(options) if options.resume else {}
    known = {key: result for key, result in earlier.items() if not (options.check and result.verdict == RAN)}
    yield from (known[row.key] for row in rows if row.key in known)
    todo = [(row, earlier.get(row.key)) for row in rows if row.key not in known]
    if options.out is not None:
        _prepare(options.out, options.resume)
    results = _in_processes(path, todo, options) if options.jobs > 1 else _here(todo, options)
    for result in results:
        if options.out is not None:
            _append(options.out / RESULTS, result)
        yield result


def count(path: Path, options: Options) -> int:
    return len(_chosen(path, options))


def repro(path: Path, result: Result, options: Options) -> str:
    """The command that runs this one row again."""
    product, engine = settings.current_product(), settings.current_engine()
    words = ["aclnn", "run", str(path), "--line", str(result.line), "--seed", str(options.seed)]
    words += ["--check"] if options.check else []
    words += ["--product", product.key] if product is not DEFAULT else []
    words += ["--engine", engine] if engine != "auto" else []
    return shlex.join(words)


def _chosen(path: Path, options: Options) -> list[Row]:
    rows = read_table(path, settings.current_product())
    if options.line is None:
        return rows
    chosen = [row for row in rows if row.line == options.line]
    if not chosen:
        raise invalid(
            f"{path} has no case on line {options.line}; its cases are on lines {rows[0].line}..{rows[-1].line}."
        )
    return chosen


Todo = tuple[Row, Result | None]  # a row, and what it did in an earlier run that did not check it


def _here(rows: Sequence[Todo], options: Options) -> Iterator[Result]:
    seconds = STEADY if len(rows) <= MANY else 0.0
    return (run_row(row, options, seconds, ran) for row, ran in rows)


def run_row(row: Row, options: Options, seconds: float, ran: Result | None = None) -> Result:
    """Runs one row, and saves what is asked for. Of one that `ran` before, what was saved then is checked."""
    if ran is not None and options.out is not None:
        judged = judge_saved(_saved(options.out, ran.line, row), row.case)
        if judged is not None:
            return replace(ran, line=row.line, case=row.name, **_judgement(judged))
    trial = try_case(row.case, check=options.check, seed=options.seed + row.line, seconds=seconds)
    result = _result(row, trial)
    wanted = result.failed if options.dump_on_fail else True
    if options.out is not None and trial.error is None and wanted:
        save_case(_saved(options.out, row.line, row), row.case.op, row.case.call, trial.arrays, trial.given)
    return result


def _saved(out: Path, line: int, row: Row) -> Path:
    return out / f"{line:03d}_{row.case.op.python}.npz"


def _result(row: Row, trial: Trial) -> Result:
    refused = {"error": "-", "verdict": trial.verdict, "detail": trial.error.message} if trial.error else None
    return Result(
        line=row.line,
        op=row.case.op.name,
        case=row.name,
        dtype=row.dtype,
        kernel=trial.kernel or "-",
        ms=f"{trial.milliseconds:.3f}" if trial.error is None else "-",
        **(refused or _judgement(trial.judged)),
        key=row.key,
    )


def _judgement(judged: list[Judged] | None) -> dict[str, str]:
    """What a results file says of the outputs."""
    wrong = [j for j in judged or () if not j.sound]
    return {
        "error": f"{worst_of(judged):.3f}" if judged else "-",
        "verdict": verdict_of(judged),
        "detail": "; ".join(f"{j.name} is {j.worst:.3g} times the allowed error off" for j in wrong),
    }


def _in_processes(path: Path, rows: Sequence[Todo], options: Options) -> Iterator[Result]:
    """The same in several processes, each on one thread; rows are read again there, by line."""
    setting = (settings.current_product().key, settings.current_engine())
    work = {row.line: (path, row.line, options, *setting, ran) for row, ran in rows}
    return (result for _, result in in_processes(options.jobs, _in_process, work))


_TABLES: dict[Path, dict[int, Row]] = {}


def _in_process(path: Path, line: int, options: Options, product: str, engine: str, ran: Result | None) -> Result:
    with ExitStack() as stack:
        for setting in (settings.product(product), settings.engine(engine), settings.threads(1)):
            stack.enter_context(setting)
        if path not in _TABLES:
            _TABLES[path] = {row.line: row for row in read_table(path, settings.current_product())}
        return run_row(_TABLES[path][line], options, 0.0, ran)


def _prepare(out: Path, resume: bool) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not resume or not (out / RESULTS).exists():
            with whole_file(out / RESULTS) as file:
                file.write((",".join(f.name for f in fields(Result)) + "\r\n").encode())
    except OSError as error:
        raise invalid(f"results cannot be written to {out}: {error}.") from None


def _append(path: Path, result: Result) -> None:
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(map(cell, astuple(result)))


def _earlier(options: Options) -> dict[str, Result]:
    """The results of an earlier run by row; one that failed is run again."""
    if options.out is None:
        raise invalid("--resume needs -o: the folder that holds the results so far.")
    path = options.out / RESULTS
    if untrusted.is_missing(path):
        return {}
    names = [f.name for f in fields(Result)]
    with untrusted.refusals(path):
        rows = list(csv.DictReader(line + "\n" for line in untrusted.lines(path)))
    found = [_read_back(row) for row in rows if set(row) == set(names) and None not in row.values()]
    return {result.key: result for result in found if result is not None and not result.failed}


def _read_back(cells: dict[str, str]) -> Result | None:
    line = whole_number(cells["line"])
    return None if line is None else Result(**{**cells, "line": line})  # type: ignore[arg-type]
