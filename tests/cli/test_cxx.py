"""What `aclnn cxx` says of names that are not here, in the words of compilers and linkers, and of finished files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import aclnn
from aclnn.base import chinese
from aclnn.cli import cxx, missing
from tests.doors.toolchain import PROGRAMS, built, needs_compiler, run_program

app = typer.Typer()
app.command("cxx", context_settings=cxx.CONTEXT)(cxx.cxx)

SAID = {
    "x.cpp:2:10: fatal error: aclnnop/aclnn_foreach_add.h: No such file or directory": "operator aclnnForeachAdd is",
    "x.cpp:2:10: fatal error: 'aclnnop/aclnn_add.h' file not found": "the operator aclnnAdd is not part of aclnn-cpu.",
    "x.cpp:2:10: 致命错误：aclnnop/aclnn_add.h：没有那个文件或目录": "aclnnop/aclnn_add.h: the operator aclnnAdd is",
    "x.cpp:2:10: fatal error: acl/ops/acl_dvpp.h: No such file or directory": "acl/ops/acl_dvpp.h: this header is not",
    "x.o: undefined reference to `aclnnAddGetWorkspaceSize'": "aclnnAddGetWorkspaceSize: the operator aclnnAdd is not",
    "ld.lld: error: undefined symbol: aclrtPeekAtLastError": "aclrtPeekAtLastError: this function is not part",
    "x.o：对‘aclnnMul’未定义的引用": "the operator aclnnMul is not",
    "x.cpp:3:1: error: ‘aclnnAdd’ was not declared in this scope": "the operator aclnnAdd is not",
    "x.cpp:3:1: error: use of undeclared identifier 'aclnnAdd'": "the operator aclnnAdd is not",
    "x.cpp:3:1: 错误：‘aclnnAdd’在此作用域中尚未声明": "the operator aclnnAdd is not",
}


@pytest.mark.parametrize("said", SAID)
def test_what_a_compiler_misses_is_explained(said: str) -> None:
    first, last = missing.explain(f"noise\n{said}\nnoise")
    assert SAID[said] in first
    assert last.startswith("Operators here: aclnnEluBackward, ")


@pytest.mark.parametrize(
    "said",
    [
        "undefined reference to `aclnnElu'",  # ours: it was linked wrongly, not missing
        "undefined reference to `accumulate'",
        "undefined reference to `aclove'",
        "fatal error: vector.h: No such file or directory",
        "error: ‘aclnnelu’ is a silly name",
        "",
    ],
)
def test_what_is_not_about_the_toolkit_is_left_alone(said: str) -> None:
    assert missing.explain(said) == []


def test_an_operator_with_both_phases_is_said_once() -> None:
    said = "undefined reference to `aclnnAdd'\nundefined reference to `aclnnAddGetWorkspaceSize'\n" * 2
    assert len(missing.explain(said)) == 2


SOURCE = """
#include <dlfcn.h>
#include "acl/acl.h"
extern "C" int aclnnAdd(void*);
int main() { return aclnnAdd(dlsym(nullptr, "aclnnMulGetWorkspaceSize")) + aclInit(nullptr); }
"""


@needs_compiler
def test_a_failing_link_is_explained_and_keeps_its_code(tmp_path: Path) -> None:
    source = tmp_path / "one.cpp"
    source.write_text(SOURCE)
    ended = CliRunner().invoke(app, [str(source), "-o", str(tmp_path / "one"), "-ldl"])
    assert ended.exit_code == 1
    assert "aclnn: aclnnAdd: the operator aclnnAdd is not part of aclnn-cpu." in ended.output


@needs_compiler
@pytest.mark.parametrize("said", SAID)
def test_what_a_compiler_misses_is_explained_in_chinese(said: str) -> None:
    for sentence in missing.explain(said):
        assert chinese.translated(sentence).endswith("。")


def test_missing_lists_symbols_and_what_is_looked_up(tmp_path: Path) -> None:
    source, made = tmp_path / "one.cpp", tmp_path / "one.o"
    source.write_text(SOURCE)
    assert CliRunner().invoke(app, ["-c", str(source), "-o", str(made)]).exit_code == 0
    ended = CliRunner().invoke(app, ["--missing", str(made)])
    assert ended.exit_code == 1
    assert ended.output.split()[:2] == ["aclnnAdd", "aclnnMulGetWorkspaceSize"]
    assert "one.o needs 3 names of the toolkit; 2 are not here." in ended.output


@needs_compiler
def test_missing_of_our_own_programs_is_nothing(tmp_path: Path) -> None:
    target = tmp_path / "tiny"
    assert CliRunner().invoke(app, [str(PROGRAMS / "tiny.cpp"), "-o", str(target)]).exit_code == 0
    ended = CliRunner().invoke(app, ["--missing", str(target)])
    assert (ended.exit_code, "; 0 are not here." in ended.output) == (0, True)


def test_missing_of_what_is_no_program(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("aclnnAdd")
    for path, sentence in ((text, "is no program"), (tmp_path / "nowhere", "there is no file"), (tmp_path, "no file")):
        with pytest.raises(aclnn.AclnnError, match=sentence):
            missing.needed_by(path)
    assert CliRunner().invoke(app, ["--missing"]).exit_code == 2
    assert CliRunner().invoke(app, ["--missing", "a", "b"]).exit_code == 2


LEAK = """
#include "suite.h"
char* volatile lost;
int main() {
  lost = new char[77];
  lost = nullptr;
  Elu elu({1}, {1});
  OK(elu.plan());
}
"""


@needs_compiler
@pytest.mark.long
def test_a_right_program_is_clean_under_sanitizers_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    source = tmp_path / "wrong.cpp"
    source.write_text(LEAK)
    for given, target in ((PROGRAMS / "executors.cpp", right), (source, wrong)):
        command = ["--sanitize", str(given), f"-I{PROGRAMS}", "-o", str(target)]
        assert CliRunner().invoke(app, command).exit_code == 0
    ended = run_program([right], dict(os.environ), timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "fine\n", "")
    ended = run_program([wrong], dict(os.environ), timeout=120)
    assert ended.returncode != 0
    assert "77 byte(s) leaked in 1 allocation(s)" in ended.stderr


@needs_compiler
@pytest.mark.long
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_right_program_is_clean_in_valgrind(tmp_path: Path) -> None:
    """With the options of the how-to page: what may be lost is shown as well."""
    target = tmp_path / "tiny"
    assert CliRunner().invoke(app, [str(PROGRAMS / "tiny.cpp"), "-g", "-o", str(target)]).exit_code == 0
    suppressions = f"--suppressions={built() / 'share' / 'aclnn' / 'valgrind.supp'}"
    options = ["-q", "--error-exitcode=9", suppressions, "--leak-check=full"]
    ended = run_program(["valgrind", *options, target], dict(os.environ), timeout=600)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[2, -0, 0, 1]\n", "")
