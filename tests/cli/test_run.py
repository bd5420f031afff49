"""`aclnn run` on tables: views, data, NaN and Inf, resuming, several processes, failures and their repro line."""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclnn import ops
from aclnn.base.device import DEFAULT
from aclnn.cases import batch
from aclnn.cases import trial as trial_module
from aclnn.cases.batch import Options, run_table
from aclnn.cases.table import Row, read_table
from aclnn.cases.trial import Trial, try_case
from aclnn.contract.cases import fill, views
from aclnn.golden.compare import compare
from aclnn.runtime.plan import Plan, make_plan
from tests.cli.test_cli import aclnn


def table(folder: Path, *rows: str) -> Path:
    path = folder / "cases.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def only_row(folder: Path, head: str, cells: str) -> Row:
    (row,) = read_table(table(folder, head, cells), DEFAULT)
    return row


def test_strides_and_offsets(tmp_path: Path) -> None:
    row = only_row(tmp_path, "op,sizes,views", 'aclnnEluBackward,shape=2x3,"gradOutput=0,2@5 gradInput=1,4"')
    spec = row.case.values["gradOutput"]
    assert (spec.strides, spec.offset) == ((0, 2), 5)
    trial = try_case(row.case, check=True, seconds=0)
    assert trial.verdict == "pass"
    assert trial.arrays["gradInput"].strides == (4, 16)


def test_distributions_and_injected_values(tmp_path: Path) -> None:
    head = "op,sizes,data,inject"
    row = only_row(tmp_path, head, "aclnnEluBackward,shape=50x8,uniform:2:3,selfOrResult=nan:4 gradOutput=inf:1")
    arrays = views(fill(row.case, 1), row.case.op)
    assert np.isnan(arrays["selfOrResult"]).sum() == 4
    assert np.isinf(arrays["gradOutput"]).sum() == 1
    finite = arrays["gradOutput"][np.isfinite(arrays["gradOutput"])]
    assert finite.min() >= 2
    assert finite.max() <= 3
    assert try_case(row.case, check=True, seconds=0).verdict == "pass"
    row = only_row(tmp_path, head, "aclnnEluBackward,shape=9,gradOutput=constant:0.25 selfOrResult=normal:7:0,")
    arrays = views(fill(row.case), row.case.op)
    assert (arrays["gradOutput"] == 0.25).all()
    assert (arrays["selfOrResult"] == 7).all()


def test_a_list_is_drawn_element_by_element_and_gates_keep_their_domain(tmp_path: Path) -> None:
    row = only_row(tmp_path, "op,data,inject", "aclnnLstmBackward,uniform:5:6,params=nan:1")
    arrays = views(fill(row.case), row.case.op)
    assert all(np.isnan(p).sum() == 1 for p in arrays["params"])
    assert (arrays["dy"] >= 5).all()
    assert (arrays["i"][0] < 1).all()


BAD_CELLS = {
    "views": [("gradOutput=1", "rank 2, so it needs 2 strides"), ("nope=1,1", "no tensor 'nope'")],
    "data": [
        ("gamma:1", "no distribution"),
        ("normal:x", "'x' in 'normal:x' is not a number"),
        ("no=normal", "no input 'no'"),
    ],
    "inject": [("gradOutput=zero:1", "injects nothing"), ("gradInput=nan:1", "no input 'gradInput'")],
}


@pytest.mark.parametrize(("column", "cell", "says"), [(c, *bad) for c, all_ in BAD_CELLS.items() for bad in all_])
def test_a_bad_cell_is_refused_with_its_line(column: str, cell: str, says: str, tmp_path: Path) -> None:
    path = table(tmp_path, f"op,sizes,{column}", f'aclnnEluBackward,shape=2x3,"{cell}"')
    ended = aclnn("run", str(path))
    assert ended.returncode == 2
    assert "line 2: " in ended.stderr
    assert says in ended.stderr


def many(folder: Path, count: int = 6) -> Path:
    return table(folder, "op,case,sizes", *(f"aclnnEluBackward,case {i},shape={i + 1}x3" for i in range(count)))


def test_results_are_appended_and_a_resumed_run_does_only_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = many(tmp_path), tmp_path / "out"
    options = Options(check=True, out=out, resume=True)
    stopped = run_table(path, options)
    done = [next(stopped) for _ in range(4)]
    stopped.close()
    ran: list[int] = []
    original = batch.run_row
    monkeypatch.setattr(batch, "run_row", lambda row, *rest: ran.append(row.line) or original(row, *rest))
    results = list(run_table(path, options))
    assert ran == [6, 7]
    assert [r.line for r in results] == [2, 3, 4, 5, 6, 7]
    assert results[:4] == done
    with (out / "results.csv").open() as file:
        assert [line["line"] for line in csv.DictReader(file)] == list("234567")


def test_a_changed_row_and_a_damaged_results_file_are_run_again(tmp_path: Path) -> None:
    path, out = many(tmp_path, 2), tmp_path / "out"
    options = Options(out=out, resume=True)
    list(run_table(path, options))
    table(tmp_path, "op,case,sizes", "aclnnEluBackward,case 0,shape=1x3", "aclnnEluBackward,case 1,shape=9x9")
    results = list(run_table(path, options))
    assert len(results) == 2
    (out / "results.csv").write_text("line,op\nx,\x01\n")
    assert len(list(run_table(path, options))) == 2


def test_a_row_that_merely_ran_has_not_passed_and_is_checked_by_the_next_run(tmp_path: Path) -> None:
    path, out = many(tmp_path, 3), tmp_path / "out"
    assert "3 ran, not checked; results are in" in aclnn("run", str(path), "-o", str(out)).stdout
    assert "3 ran, not checked; results are in" in aclnn("run", str(path), "-o", str(out), "--resume").stdout
    (out / "003_elu_backward.npz").unlink()
    ended = aclnn("run", str(path), "-o", str(out), "--resume", "--check")
    assert "3 passed, 0 failed; results are in" in ended.stdout
    with (out / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["verdict"] for line in lines] == ["ran"] * 3 + ["pass"] * 3
    assert all(line["error"] != "-" for line in lines[3:])
    assert [line["ms"] for line in lines[3::2]] == [line["ms"] for line in lines[0:3:2]]  # they were not run again
    assert "3 passed, 0 failed" in aclnn("run", str(path), "-o", str(out), "--resume").stdout


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_saved_is_what_is_checked(jobs: int, tmp_path: Path) -> None:
    path, out = many(tmp_path, 3), tmp_path / "out"
    list(run_table(path, Options(out=out)))
    with np.load(out / "003_elu_backward.npz") as stored:
        arrays = dict(stored)
    np.savez(out / "003_elu_backward.npz", **{**arrays, "gradInput": arrays["gradInput"] + 1})
    results = {r.line: r for r in run_table(path, Options(check=True, out=out, resume=True, jobs=jobs))}
    assert {line: r.verdict for line, r in results.items()} == {2: "pass", 3: "FAIL", 4: "pass"}
    assert "gradInput is" in results[3].detail


@pytest.mark.parametrize("spoilt", ["no output", "another call", "no file", "garbage"])
def test_what_was_saved_of_another_call_or_in_part_is_computed_again(spoilt: str, tmp_path: Path) -> None:
    path, out = many(tmp_path, 2), tmp_path / "out"
    list(run_table(path, Options(out=out)))
    saved, other = out / "002_elu_backward.npz", out / "003_elu_backward.npz"
    with np.load(saved) as stored:
        arrays = dict(stored)
    if spoilt == "no output":
        np.savez(saved, **{n: a for n, a in arrays.items() if n != "gradInput"})
    elif spoilt == "another call":
        saved.write_bytes(other.read_bytes())
    else:
        saved.unlink() if spoilt == "no file" else saved.write_bytes(b"PK")
    row = read_table(path, DEFAULT)[0]
    assert trial_module.judge_saved(saved, row.case) is None
    assert trial_module.judge_saved(other, read_table(path, DEFAULT)[1].case) is not None
    results = list(run_table(path, Options(check=True, out=out, resume=True)))
    assert [r.verdict for r in results] == ["pass", "pass"]


def test_a_call_that_asks_for_nothing_is_skipped_not_passed(tmp_path: Path) -> None:
    path = table(tmp_path, "op,sizes", 'aclnnConvolutionBackward,"output_mask=false,false,false"')
    ended = aclnn("run", str(path), "--check")
    assert ended.returncode == 0
    assert ended.stdout.endswith("1 skipped: no output is asked for\n")


@pytest.mark.parametrize(
    "engine", ["auto", *(pytest.param(e, marks=pytest.mark.long) for e in ("fast", "numpy", "reference"))]
)
@pytest.mark.parametrize("op", [o.name for o in ops.all_ops()])
def test_what_run_saves_compare_finds_right(op: str, engine: str, tmp_path: Path) -> None:
    """Of one operator and of a table, also of what is updated in place again and again to be timed."""
    cases = table(tmp_path, "op", op)
    for what, folder in ((op, tmp_path / "one"), (str(cases), tmp_path / "table")):
        ended = aclnn("run", what, "--engine", engine, "-o", str(folder))
        assert ended.returncode == 0, ended.stderr
        found = compare(folder)
        assert found.sound
        assert found.compared
        assert not found.errors
    ended = aclnn("run", str(cases), "--engine", engine, "-o", str(tmp_path / "table"), "--resume", "--check")
    assert "1 passed, 0 failed" in ended.stdout


def test_resume_needs_a_folder(tmp_path: Path) -> None:
    ended = aclnn("run", str(many(tmp_path)), "--resume")
    assert ended.returncode == 2
    assert "--resume needs -o" in ended.stderr


def test_several_processes_give_the_same_results(tmp_path: Path) -> None:
    path = many(tmp_path, 4)
    alone = sorted(run_table(path, Options(check=True)), key=lambda r: r.line)
    shared = sorted(run_table(path, Options(check=True, jobs=2)), key=lambda r: r.line)
    assert [(r.line, r.kernel, r.error, r.verdict) for r in alone] == [
        (r.line, r.kernel, r.error, r.verdict) for r in shared
    ]


def test_a_wrong_result_fails_is_dumped_and_its_repro_line_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = many(tmp_path, 3), tmp_path / "out"
    original = batch.try_case

    def planted(case: object, **options: object) -> Trial:
        trial = original(case, **options)  # type: ignore[arg-type]
        if case.values["gradOutput"].shape[0] == 2:  # type: ignore[attr-defined]
            trial.judged[0].ratio[0] = 7
        return trial

    monkeypatch.setattr(batch, "try_case", planted)
    ended = aclnn("run", str(path), "--check", "--dump-on-fail", "-o", str(out), "--seed", "5")
    assert ended.returncode == 1
    assert "2 passed, 1 failed" in ended.stdout
    assert "gradInput is 7 times the allowed error off" in ended.stdout
    assert [p.name for p in out.glob("*.npz")] == ["003_elu_backward.npz"]
    again = re.search(r"again: aclnn (run .*)", ended.stdout)
    assert again is not None
    ended = aclnn(*again[1].split())
    assert ended.returncode == 1
    assert "case 1" in ended.stdout
    assert "case 2" not in ended.stdout


def test_a_repro_line_keeps_product_and_engine(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    path = table(folder, "op,case,dtype,product,sizes", "aclnnLstmBackward,refused,,,steps=2")
    ended = aclnn("run", str(path), "--product", "310P", "--engine", "numpy")
    again = re.search(r"again: aclnn (run .*)", ended.stdout)
    assert again is not None
    ended = aclnn(*shlex.split(again[1]))
    assert ended.returncode == 2
    assert "product Atlas inference does not support this operator" in ended.stdout
    assert "--engine numpy" in again[1]


def test_a_row_that_is_not_judged_has_no_error_and_a_plain_repro_line(tmp_path: Path) -> None:
    path = many(tmp_path, 1)
    (result,) = run_table(path, Options())
    assert (result.error, result.verdict) == ("-", "ran")
    assert batch.repro(path, result, Options()) == shlex.join(["aclnn", "run", str(path), "--line", "2", "--seed", "0"])


def test_a_kernel_is_named_and_gets_the_workspace_it_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wanting(*given: Any) -> Plan:
        plan = make_plan(*given)
        return replace(plan, prepared=replace(plan.prepared, workspace_size=24))

    monkeypatch.setattr(trial_module, "make_plan", wanting)
    (row,) = read_table(many(tmp_path, 1), DEFAULT)
    trial = try_case(row.case, check=True, engine="numpy", seconds=0)
    assert (trial.kernel, trial.verdict) == ("numpy", "pass")


def test_what_is_updated_in_place_is_judged_after_one_run(tmp_path: Path) -> None:
    row = only_row(tmp_path, "op,sizes", "aclnnInplaceElu,shape=5x3")
    assert try_case(row.case, check=True, seconds=0.02).verdict == "pass"


def test_a_shape_may_begin_with_zero(tmp_path: Path) -> None:
    path = table(tmp_path, "op,case,dtype,product,sizes", "aclnnEluBackward,empty,,,shape=0x3")
    ended = aclnn("run", str(path), "--check")
    assert "1 passed, 0 failed" in ended.stdout, ended.stderr


def test_a_line_without_a_case_is_refused(tmp_path: Path) -> None:
    ended = aclnn("run", str(many(tmp_path)), "--line", "99")
    assert ended.returncode == 2
    assert "has no case on line 99; its cases are on lines 2..7" in ended.stderr


def test_a_large_table_lists_only_what_failed(tmp_path: Path) -> None:
    rows = ["aclnnEluBackward,fine,shape=3"] * 150 + ["aclnnEluBackward,bad,shape=3 alpha=-1 is_result=true"]
    ended = aclnn("run", str(table(tmp_path, "op,case,sizes", *rows)))
    assert ended.returncode == 2
    assert "150 ran, not checked; 1 error\n" in ended.stdout
    assert "fine" not in ended.stdout


def test_an_unwritable_folder_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ended = aclnn("run", str(many(tmp_path)), "-o", str(tmp_path / "file" / "out"))
    assert ended.returncode == 2
    assert "results cannot be written" in ended.stderr
    assert ended.stdout == ""


def test_a_folder_that_cannot_be_is_said_for_one_operator_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ended = aclnn("run", "aclnnElu", "-o", str(tmp_path / "file"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "results cannot be written" in ended.stderr


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = batch.try_case, []

    def interrupted(case: object, **options: object) -> Trial:
        calls.append(case)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(case, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(batch, "try_case", interrupted)
    ended = aclnn("run", str(many(tmp_path)), "-o", str(tmp_path / "out"))
    assert ended.returncode == 130
    assert "stopped after 2 of 6 rows; --resume goes on from here" in ended.stdout
