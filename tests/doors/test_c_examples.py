"""The C++ examples: each compiles without a warning, runs, is right, and ACLNN_CHECK=1 finds nothing to say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aclnn import ops
from tests.doors.toolchain import built, compile_program, needs_compiler, run_program

pytestmark = needs_compiler

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "cpp"
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.cpp"))


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str, tmp_path: Path) -> None:
    program = compile_program(EXAMPLES / f"{name}.cpp", tmp_path, "-std=c++14")
    ended = run_program([program], {**os.environ, "ACLNN_CHECK": "1"})
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


def test_every_operator_has_its_example() -> None:
    text = "".join((EXAMPLES / f"{name}.cpp").read_text(encoding="utf-8") for name in NAMES)
    assert [op.name for op in ops.all_ops() if f"ACL_RUN({op.name}," not in text] == []


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_the_cmake_project(tmp_path: Path) -> None:
    steps = [
        ["cmake", "-S", str(EXAMPLES), "-B", str(tmp_path), f"-DCMAKE_PREFIX_PATH={built()}"],
        ["cmake", "--build", str(tmp_path)],
        ["ctest", "--test-dir", str(tmp_path), "--output-on-failure"],
    ]
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "100% tests passed" in ended.stdout
