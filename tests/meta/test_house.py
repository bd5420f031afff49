"""House rules that a program can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn import ops

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for p in (ROOT / "src").rglob("*.py") if p.name != "_operators.py")  # that one is generated


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_read_in_one_sitting_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a file begins with what it is for"
    assert len(text.splitlines()) < 400


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_are_short(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and "kernels" not in path.parts:
            assert (node.end_lineno or 0) - node.lineno < 50, f"{node.name} is too long"


def test_every_family_has_its_file_in_ops_and_kernels_and_its_test() -> None:
    for family in ops.FAMILIES:
        for place in (f"src/aclnn/ops/{family}.py", f"src/aclnn/kernels/{family}.py", f"tests/ops/test_{family}.py"):
            assert (ROOT / place).exists(), place


def test_generated_files_are_fresh() -> None:
    pytest.importorskip("ruff")
    ended = subprocess.run([sys.executable, "-m", "aclnn.gen", "--check"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
