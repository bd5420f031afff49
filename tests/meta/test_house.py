"""House rules that a program can check. CONTRIBUTING.md lists them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclnn import ops

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for p in (ROOT / "src").rglob("*.py") if p.name != "_operators.py")  # that one is generated
WRITTEN = sorted(
    p
    for folder in ("src", "tests", "benchmarks", "examples")
    for p in (ROOT / folder).rglob("*")
    if p.suffix in (".py", ".cpp", ".h", ".c")
    and not {"generated", "__pycache__"} & {*p.parts}
    and p.name != "_operators.py"
)

MOST_LINES, MOST_OF_A_FUNCTION = 400, 40
LONG_FILES: set[str] = set()  # nothing may be added
LONG_FUNCTIONS = {
    "cli/compare.py:compare": "its signature is the help of the command",
    "cli/run.py:run": "its signature is the help of the command",
    "golden/compare.py:compare": "its signature is the help of the function",
    "kernels/source/lstm_cell.py:backward": "a loop nest",
    "kernels/source/lstm_gates.py:backward": "a loop nest",
    "kernels/source/lstm_gates.py:forward": "a loop nest",
    "kernels/source/matrix.py:matmul": "a loop nest",
    "kernels/source/matrix.py:step": "a loop nest",
}
SHARED_NAMES: set[str] = set()  # in kernels/; nothing may be added
OF_A_MACHINE = re.compile(r"/(?:work|root|home/(?!me/)\w+|Users/\w+)/[\w.]|[A-Z]:\\\\Users")
TEXTS = (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*.toml"), ROOT / "Makefile")


def called(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def nodes(path: Path, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    return (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds))


def long_functions(path: Path) -> Iterator[str]:
    for node in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef):
        if node.end_lineno - node.lineno >= MOST_OF_A_FUNCTION:
            yield node.name


def shared(paths: list[Path]) -> dict[str, list[str]]:
    """The classes of one name in several places."""
    found = defaultdict(list)
    for path in paths:
        for node in nodes(path, ast.ClassDef):
            found[node.name].append(str(path))
    return {name: places for name, places in found.items() if len(places) > 1}


@pytest.mark.parametrize("path", SOURCES, ids=called)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_a_file_is_read_in_one_sitting() -> None:
    assert {called(p) for p in WRITTEN if lines_of(p) > MOST_LINES} == LONG_FILES


def test_functions_are_short() -> None:
    found = {
        f"{path.relative_to(ROOT / 'src/aclnn').as_posix()}:{name}" for path in SOURCES for name in long_functions(path)
    }
    assert found == set(LONG_FUNCTIONS)


def test_a_class_has_a_name_of_its_own() -> None:
    assert shared(SOURCES).keys() == SHARED_NAMES


def test_names_are_shared_with_kernels_alone() -> None:
    for name, places in shared([p for p in SOURCES if "kernels" not in p.parts]).items():
        raise AssertionError(f"{name} is the name of several classes: {places}")


def test_nothing_names_a_place_of_a_machine() -> None:
    found = [called(p) for p in (*WRITTEN, *TEXTS) if OF_A_MACHINE.search(p.read_text(encoding="utf-8"))]
    assert found == [called(Path(__file__).resolve())]  # the rule itself


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("see /work/x.py", True),
        ("/home/ann/a", True),
        ("/home/me/train.py", False),
        ("a/work/b", True),
        ("work/x", False),
    ],
)
def test_a_place_of_a_machine_is_known(text: str, is_one: bool) -> None:
    assert bool(OF_A_MACHINE.search(text)) is is_one


def test_what_is_too_long_or_has_a_name_twice_is_found(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("class Twice: pass\ndef short():\n" + "    1\n" * 39, encoding="utf-8")
    second.write_text("class Twice: pass\ndef long():\n" + "    1\n" * 40, encoding="utf-8")
    assert [*long_functions(first), *long_functions(second)] == ["long"]
    assert shared([first, second]) == {"Twice": [str(first), str(second)]}


def test_every_family_has_its_file_in_ops_and_kernels_and_its_test() -> None:
    for family, files in ops.FAMILIES.items():
        assert (ROOT / f"src/aclnn/kernels/{family}/numpy.py").exists(), family
        for place in (place for file in files for place in (f"src/aclnn/ops/{file}.py", f"tests/ops/test_{file}.py")):
            assert (ROOT / place).exists(), place


def test_generated_files_are_fresh() -> None:
    pytest.importorskip("ruff")
    ended = subprocess.run([sys.executable, "-m", "aclnn.gen", "--check"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


def test_lists_of_tests_name_files_that_are_there() -> None:
    """Those of the emulated machines, of the instruction sets and of the continuous integration."""
    from tests.emulated.__main__ import CORE as EMULATED
    from tests.kernels.native.test_isa import CORE as LEVELS

    named = {f"tests/kernels/{name}.py" for name in (*EMULATED, *LEVELS)}
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        named |= set(re.findall(r"tests/[\w/]+\.py", workflow.read_text(encoding="utf-8")))
    assert "tests/kernels/native/test_pool.py" in named
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []
