"""The end of a run says what did not run and why; and no test is one that cannot fail."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SOME = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_skipped(n):
    pytest.skip("no such machine here")

@pytest.mark.skip(reason="another reason")
def test_marked():
    pass

@pytest.mark.xfail(strict=True, reason="a known fault")
def test_known():
    assert False
"""


def test_every_reason_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SOME)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-c",
        os.devnull,
        "--rootdir",
        tmp_path,
        tmp_path,
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS.parent), *sys.path)))}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    said = [line for line in ended.stdout.splitlines() if line.startswith(("skipped: ", "xfailed: "))]
    assert said == [
        "skipped: 3 tests: no such machine here",
        "skipped: 1 test: another reason",
        "xfailed: 1 test: a known fault",
    ], ended.stdout


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield path, node


CLAIMS = ("raises", "warns", "fail", "assert_close", "assert_allclose", "assert_array_max_ulp", "gradcheck", "opcheck")
# Calls that must end without an exception, or in one that is ours: whatever else they raise fails the test.
MUST_NOT_RAISE = ("read_or_refuse", "test_every_tiny_call_runs")


def claims_something(node: ast.FunctionDef, helpers: set[str]) -> bool:
    calls = {ast.unparse(n.func).rpartition(".")[2] for n in ast.walk(node) if isinstance(n, ast.Call)}
    return bool(calls & helpers) or any(isinstance(n, (ast.Assert, ast.Raise)) for n in ast.walk(node))


def test_every_test_can_fail() -> None:
    """It asserts, or calls something of the tests that does."""
    known, helpers = list(functions()), {*CLAIMS, *MUST_NOT_RAISE}
    while more := {n.name for _, n in known if claims_something(n, helpers)} - helpers:
        helpers |= more
    tests = [(path, node) for path, node in known if node.name.startswith("test_") and node.name not in MUST_NOT_RAISE]
    idle = [f"{p.relative_to(TESTS)}: {n.name}" for p, n in tests if not claims_something(n, helpers - {n.name})]
    assert idle == []


@pytest.mark.parametrize("body", ["pass", "pytest.skip('later')", "f(x)"])
def test_a_test_that_claims_nothing_is_found(body: str) -> None:
    (node,) = ast.parse(f"def test_x(): {body}").body
    assert isinstance(node, ast.FunctionDef)
    assert not claims_something(node, set(CLAIMS))
