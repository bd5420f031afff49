"""The command line as a person uses it."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from aclnn import __version__, bfloat16, ops
from aclnn.cli import main
from aclnn.cli.app import app
from tests.doors.toolchain import needs_compiler

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(name for command in app.registered_commands if (name := command.name))


@dataclass
class Ended:
    """What a run of the command left behind."""

    returncode: int
    stdout: str
    stderr: str


def aclnn(*arguments: str, cwd: Path | None = None) -> Ended:
    """Runs the command in this process: starting another one takes longer than most commands."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    given = patch.object(sys, "argv", ["aclnn", *arguments])
    with chdir(cwd or Path.cwd()), given, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


@contextmanager
def chdir(path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def test_as_a_program() -> None:
    command = [sys.executable, "-c", "from aclnn.cli import main; main()", "describe", "aclnnNope"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2
    assert ended.stderr.startswith("aclnn: [161002 ACLNN_ERR_PARAM_INVALID] there is no operator 'aclnnNope'")


def test_alone_it_says_what_to_do_first() -> None:
    ended = aclnn()
    assert ended.returncode == 0
    assert "aclnn describe aclnnEluBackward" in ended.stdout
    assert aclnn("--version").stdout.strip() == __version__


def example(*command: str) -> list[str]:
    """The words of the example that a help ends with."""
    ended = aclnn(*command, "--help")
    assert ended.returncode == 0
    last = ended.stdout.strip().splitlines()[-1].strip()
    assert last.startswith(" ".join(["Example: aclnn", *command]))
    return shlex.split(last.removeprefix("Example: aclnn "))


def test_every_help_ends_with_an_example() -> None:
    assert example()
    for command in COMMANDS:
        example(command)


def test_the_examples_run(tmp_path: Path) -> None:
    """In this order, in a folder with nothing but the examples; the C++ ones and benchmarks have tests of their own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in ([], ["ops"], ["describe"], ["run"], ["compare"], ["env"]):
        ended = aclnn(*example(*command), cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "report.html").exists()


@needs_compiler
def test_the_examples_of_the_c_door_run(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in ("flags", "cxx"):
        assert aclnn(*example(command), cwd=tmp_path).returncode == 0
    assert (tmp_path / "elu").exists()


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_an_operator_alone_runs_on_data_of_its_own(op: ops.Op) -> None:
    ended = aclnn("run", op.name, "--check", "--seed", "3")
    assert ended.returncode == 0, ended.stderr
    assert "pass" in ended.stdout


@pytest.mark.parametrize(
    ("begun", "becomes"),
    [
        ("desc", "describe"),
        ("describe aclnnConvT", "aclnnConvTbcBackward aclnnConvTbc"),
        ("compare --sta", "--standard"),
    ],
)
def test_a_shell_completes_commands_options_and_operators(begun: str, becomes: str) -> None:
    """What the installed function of bash asks for."""
    words = {"COMP_WORDS": f"aclnn {begun}", "COMP_CWORD": str(len(begun.split())), "_ACLNN_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "from aclnn.cli.app import app; app(prog_name='aclnn')"]
    ended = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True)
    assert ended.stdout.split() == becomes.split()


def test_ops_lists_every_operator_and_product() -> None:
    english, chinese = aclnn("ops").stdout, aclnn("ops", "--lang", "zh").stdout
    for op in ops.all_ops():
        assert op.name in english
        assert op.zh in chinese
    assert "Atlas A3" in english


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_describe_shows_prototype_arguments_and_rules_in_both_languages(op: ops.Op) -> None:
    for lang in ("en", "zh"):
        shown = aclnn("describe", op.name, "--lang", lang).stdout
        assert f"{op.name}GetWorkspaceSize(" in shown
        for arg in op.args:
            assert arg.name in shown
        assert shown.count("16100") >= len(op.all_rules) / 2


def test_describe_says_what_every_tensor_must_be() -> None:
    assert "no two indexes of an output are the same element" in aclnn("describe", "elu").stdout
    assert "视图不超出其存储范围" in aclnn("describe", "elu", "--lang", "zh").stdout


def test_env_names_versions_and_settings() -> None:
    shown = aclnn("env").stdout
    for fact in ("aclnn-cpu", "numpy", "product", "Atlas A2", "threads", "language"):
        assert fact in shown


def test_env_speaks_chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path))
    shown = aclnn("env", "--lang", "zh").stdout
    assert "产品                 Atlas A2 训练系列产品/Atlas A2 推理系列产品\n" in shown
    assert f"缓存                 {tmp_path}（0个文件，共0.0 MB）\n" in shown


def test_env_says_where_the_cache_is_and_how_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path))
    (tmp_path / "code").write_bytes(bytes(1_500_000))
    assert f"cache                {tmp_path} (1.5 MB in 1 file)" in aclnn("env").stdout


def test_run_on_files(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array([-2, -1, 0, 1], np.float32))
    arguments = ["gradOutput=y.npy", "alpha=1.0", "scale=1", "input_scale=1", "isResult=true", "selfOrResult=y.npy"]
    options = [word for a in arguments for word in ("--arg", a)]
    ended = aclnn("run", "aclnnEluBackward", *options, "--check", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "[ 2. -0.  0.  1.]" in ended.stdout
    assert "pass" in ended.stdout
    ended = aclnn("run", "elu_backward", *options, "-o", "saved", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "saved" / "elu_backward.npz").exists()


def test_run_on_files_takes_one_number_for_all_axes(tmp_path: Path) -> None:
    for name, shape in (("g", (1, 2, 3, 3)), ("x", (1, 2, 3, 3)), ("w", (2, 2, 1, 1))):
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    arguments = ["gradOutput=g.npy", "input=x.npy", "weight=w.npy", "biasSizes=2", "stride=1", "padding=0x0"]
    arguments += ["dilation=1,1", "transposed=false", "outputPadding=0", "groups=1", "outputMask=true,true,false"]
    ended = aclnn("run", "convolution_backward", *(w for a in arguments for w in ("--arg", a)), "--check", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "gradWeight: 0.000 of the allowed error, pass" in ended.stdout


def test_run_reads_bfloat16_that_numpy_saved(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array([-2, -1, 0, 1], bfloat16))
    given = ["gradOutput=y.npy", "alpha=1", "scale=1", "inputScale=1", "isResult=true", "selfOrResult=y.npy"]
    ended = aclnn("run", "aclnnEluBackward", *(word for a in given for word in ("--arg", a)), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "gradInput: bfloat16 [4]" in ended.stdout


def test_run_on_a_table_checks_and_saves(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    table.write_text(
        "op,case,dtype,product,sizes\n"
        "# a comment\n"
        "aclnnEluBackward,one,float16,,shape=3x4 alpha=0.5\n"
        "elu_backward,two,float64,cpu,shape=5 is_result=true\n"
        "aclnnEluBackward,three,,,shape=scalar\n"
    )
    ended = aclnn("run", str(table), "--check", "-o", str(tmp_path / "out"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "3 passed, 0 failed" in ended.stdout
    assert len(list((tmp_path / "out").glob("*.npz"))) == 3


def test_a_refused_case_is_a_failure_with_its_sentence(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    table.write_text("op,case,sizes\naclnnEluBackward,bad,shape=3 alpha=-1 is_result=true\n")
    ended = aclnn("run", str(table))
    assert ended.returncode == 2
    assert "line 2 (bad): aclnnEluBackward: alpha is -1; it must be ≥ 0 when isResult." in ended.stdout


BAD_TABLES = {
    "no such operator": ("op\naclnnNope\n", "line 2: there is no operator 'aclnnNope'; choose one of"),
    "no such column": ("op,colour\naclnnEluBackward,red\n", "columns op, colour; they must be among op, case"),
    "no such size": ("op,sizes\naclnnEluBackward,width=3\n", "line 2: there is no size 'width'; choose among shape"),
    "no such dtype": ("op,dtype\naclnnEluBackward,float7\n", "line 2: there is no dtype 'float7'"),
    "not an assignment": ("op,sizes\naclnnEluBackward,shape\n", "'shape' is not of the form name=value"),
    "not a number": ("op,sizes\naclnnEluBackward,alpha=big\n", "'big' is not a number"),
    "too many cells": ("op,sizes\naclnnEluBackward,a,b\n", "3 cells under 2 columns"),
    "empty": ("", "(none)"),
    "only a head": ("op,sizes\n", "has no case"),
    "no such product": ("op,product\naclnnEluBackward,A9\n", "there is no product 'A9'"),
    "binary": ("\x00\x01\x02", "cases.csv"),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_bad_table_is_refused_with_line_and_reason(kind: str, tmp_path: Path) -> None:
    text, says = BAD_TABLES[kind]
    table = tmp_path / "cases.csv"
    table.write_text(text)
    ended = aclnn("run", str(table))
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "nowhere.csv"], "nowhere.csv cannot be read"),
        (["run", "examples/cases.csv", "--arg", "alpha=1"], "--arg has no meaning for a table of cases"),
        (["run", "aclnnEluBackward", "--resume"], "--resume has no meaning for an operator"),
        (["run", "aclnnEluBackward", "--arg", "gradOutput"], "not of the form name=value"),
        (["run", "aclnnEluBackward", "--arg", "colour=red"], "has no argument 'colour'; its inputs are gradOutput"),
        (["run", "aclnnEluBackward", "--arg", "gradOutput=no.npy"], "no.npy"),
        (
            ["run", "aclnnEluBackward", "--arg", "alpha=1"],
            "also needs gradOutput, scale, inputScale, isResult, selfOrResult; give each",
        ),
        (["run", "aclnnEluBackward", "--engine", "gpu"], "there is no engine 'gpu'; choose one of auto"),
        (
            ["run", "aclnnEluBackward", "--arg", "alpha=1", "--seed", "1"],
            "--seed has no meaning for an operator on files",
        ),
        (["describe", "aclnnNope"], "there is no operator 'aclnnNope'; choose one of"),
        (["describe", "elu_backwards"], "there is no operator 'elu_backwards'; did you mean elu_backward? There are"),
        (["run", "aclnnEluBackward", "--seed", "-1"], "Invalid value for '--seed'"),
        (["run", "examples/cases.csv", "--seed", "-1"], "Invalid value for '--seed'"),
        (["compare", "-tp", ""], "-tp is empty; it must name a file or a folder"),
        (["compare", "--join="], "--join is empty; it must name a file or a folder"),
        (["flags", "--uninstall", ""], "--uninstall is empty; it must name a file or a folder"),
        (["bench", "elu", "--processes", "0"], "Invalid value for '--processes'"),
        (["bench", "elu", "--seconds", "nan"], "--seconds is nan; it must be a number above 0"),
        (["bench", "elu", "--patience", "-1"], "--patience is -1; it must be a number that is not negative"),
        (["compare", "-tp", "nowhere"], "nowhere cannot be read: no such file or directory"),
        (["compare", "-tp", "nowhere.npz"], "nowhere.npz cannot be read: no such file or directory"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments: list[str], says: str) -> None:
    ended = aclnn(*arguments)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
