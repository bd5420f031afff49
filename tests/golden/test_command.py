"""`aclnn compare` as people type it: options, exit codes, what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import aclnn
from aclnn.cli.compare import compare
from tests.golden.planting import Planted, planted

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(compare)


@pytest.fixture
def run() -> Planted:
    return planted("aclnnEluBackward", shape=(20, 30))


def aclnn_compare(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, aclnn.AclnnError):
        return 2, result.exception.message  # what the entry point prints, and its exit code
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_right_and_wrong(run: Planted, tmp_path: Path) -> None:
    code, text = aclnn_compare("-tp", run.save(tmp_path / "right.npz"))
    assert code == 0
    assert text.splitlines()[-1] == "next: nothing; the target is right"
    code, text = aclnn_compare("-tp", run.save(tmp_path / "wrong.npz", gradInput=run.arrays["gradInput"] + 1))
    assert code == 1
    assert "verdict (mixed): FAIL    sound: no" in text


@pytest.mark.parametrize("report", ["r.html", "folder"])
def test_who_has_the_page_is_not_told_to_make_it(report: str, run: Planted, tmp_path: Path) -> None:
    wrong = run.arrays["gradInput"].copy()
    wrong[3, 4] += 1e-3
    path = run.save(tmp_path / "case.npz", gradInput=wrong)
    asked = ("-tp", path, "--no-hints", "--standard", "sound")
    assert "; -o report.html shows" in aclnn_compare(*asked, "-o", tmp_path / "r.csv")[1].replace("\n  ", " ")
    assert aclnn_compare(*asked, "-o", tmp_path / report)[1].splitlines()[-1] == "next: look at gradInput[3, 4] first"


def test_strict_follows_soundness(run: Planted, tmp_path: Path) -> None:
    wrong = run.arrays["gradInput"].copy()
    wrong[0, 0] += 0.005
    path = run.save(tmp_path / "case.npz", gradInput=wrong)
    assert aclnn_compare("-tp", path)[0] == 0
    assert aclnn_compare("-tp", path, "--strict")[0] == 1


def test_golden_standard_report_and_language(run: Planted, tmp_path: Path) -> None:
    path = run.save(tmp_path / "case.npz")
    golden = run.save(tmp_path / "golden.npz")
    report, table = tmp_path / "r.json", tmp_path / "r.csv"
    options = ("--standard", "binary", "-o", report, "-o", table, "--lang", "zh")
    code, text = aclnn_compare("-tp", path, "-gp", golden, *options)
    assert code == 0
    assert "判定（binary）：通过" in text
    assert json.loads(report.read_text(encoding="utf-8"))["outputs"][0]["golden"] == "given"
    assert table.exists()


def test_operator_and_arguments_by_hand(run: Planted, tmp_path: Path) -> None:
    for name in ("gradOutput", "selfOrResult", "gradInput"):
        np.save(tmp_path / f"{name}.npy", run.arrays[name])
    scalars = ("--arg", "alpha=1", "--arg", "scale=1.0", "--arg", "input_scale=1", "--arg", "isResult=false")
    files = (
        "--arg",
        f"gradOutput={tmp_path / 'gradOutput.npy'}",
        "--arg",
        f"selfOrResult={tmp_path / 'selfOrResult.npy'}",
    )
    target = ("-tp", tmp_path / "gradInput.npy", "--op", "elu_backward")
    assert aclnn_compare(*target, *scalars, *files)[0] == 0
    code, text = aclnn_compare(*target, *scalars, "--arg", "beta=3")
    assert code == 2
    assert "aclnnEluBackward has no argument 'beta'; its inputs are gradOutput" in text


def test_arrays_of_attributes_by_hand(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward", nd=1)
    np.savez(tmp_path / "all.npz", **{n: a for n, a in run.arrays.items() if a is not None})
    values = (
        "biasSizes=6 stride=1 padding=0 dilation=1 transposed=false outputPadding=0 groups=1 outputMask=true,true,true"
    )
    options = [part for value in values.split() for part in ("--arg", value)]
    assert aclnn_compare("-tp", tmp_path / "all.npz", "--op", "convolution_backward", *options)[0] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--standard", "best"), "there is no standard 'best'; choose one of mixed"),
        (("--dtype", "float7"), "there is no dtype 'float7'"),
        (("--shape", "2xa"), "is not a number"),
        (("--shape", "-3"), "is no shape"),
        (("--arg", "alpha=1"), "--arg needs --op"),
        (("--op", "foo"), "there is no operator 'foo'"),
        (("-gp", "none.npz"), "none.npz cannot be read: no such file or directory"),
        (("-o", "x.pdf"), "has the suffix '.pdf'"),
    ],
)
def test_bad_input_is_one_sentence(run: Planted, tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    code, text = aclnn_compare("-tp", run.save(tmp_path / "case.npz"), *options)
    assert code == 2
    assert sentence in text


def test_comparing_imports_nothing_heavy(run: Planted, tmp_path: Path) -> None:
    path = run.save(tmp_path / "case.npz")
    program = (
        "import sys; from aclnn.golden.compare import compare; "
        f"found = compare({str(path)!r}); found.save({str(tmp_path / 'report')!r}); assert found.sound; "
        "print(sorted({'torch', 'numba', 'onednn', 'matplotlib', 'jinja2', 'openpyxl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
