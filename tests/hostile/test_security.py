"""Security of the Python side: nothing a user hands us is executed, and what we keep is private."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn.cases import batch

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "aclnn").rglob("*.py"))

FORBIDDEN_CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "pty.spawn", "tempfile.mktemp"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.load", "marshal.loads", "shelve.open"),
    *("dill.load", "dill.loads", "joblib.load", "yaml.load"),
}


def called(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src" / "aclnn")))
def test_nothing_is_evaluated_unpickled_or_given_to_a_shell(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = path.relative_to(ROOT / "src" / "aclnn").as_posix()
    for function, call in called(tree):
        assert function not in FORBIDDEN_CALLS, f"{name}:{call.lineno} calls {function}"
        for given in call.keywords:
            wanted = ast.unparse(given.value)
            assert (given.arg, wanted) != ("shell", "True"), f"{name}:{call.lineno}"
            assert (given.arg, wanted) != ("allow_pickle", "True"), f"{name}:{call.lineno}"
            assert (given.arg, wanted) != ("weights_only", "False"), f"{name}:{call.lineno}"
        if function.endswith(("np.load", "torch.load")):
            safe = {"allow_pickle=False", "weights_only=True"}
            assert safe & {f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords}, f"{name}:{call.lineno}"


def test_the_check_itself_finds_what_it_looks_for() -> None:
    names = {name for name, _ in called(ast.parse("import os\nos.system('x')\neval('1')"))}
    assert names & FORBIDDEN_CALLS == {"os.system", "eval"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src" / "aclnn")))
def test_pickle_is_not_even_imported(path: Path) -> None:
    modules = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    assert not found & modules


HOSTILE_NAME = "<script>alert(1)</script>\"'&=cmd|' /C calc'!A0"


def hostile_comparison(tmp_path: Path) -> aclnn.golden.result.Comparison:  # type: ignore[name-defined]
    x = np.ones(3, np.float32)
    return aclnn.compare({HOSTILE_NAME: x}, {HOSTILE_NAME: x * 2}, dtype="float32")


def test_reports_escape_every_name(tmp_path: Path) -> None:
    found = hostile_comparison(tmp_path)
    for suffix in (".html", ".json", ".xml"):
        found.save(tmp_path / f"r{suffix}", "en")
    assert "<script>alert" not in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in (tmp_path / "r.xml").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["outputs"][0]["output"] == HOSTILE_NAME


def test_a_page_loads_nothing_from_the_network(tmp_path: Path) -> None:
    hostile_comparison(tmp_path).save(tmp_path / "r.html", "en")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for reference in ('src="http', 'href="http', "@import", "url(http", 'src="//'):
        assert reference not in page


def test_a_link_in_the_place_of_a_report_is_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for suffix in (".html", ".csv", ".json", ".xml", ".xlsx"):
        (tmp_path / f"r{suffix}").symlink_to(precious)
        hostile_comparison(tmp_path).save(tmp_path / f"r{suffix}", "en")
        assert not (tmp_path / f"r{suffix}").is_symlink()
    assert precious.read_text() == "precious"


def test_a_link_in_the_place_of_results_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("op,sizes\naclnnEluBackward,shape=2x3\n")
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / batch.RESULTS).symlink_to(tmp_path / "precious")
    assert len(list(batch.run_table(tmp_path / "table.csv", batch.Options(out=tmp_path / "out")))) == 1
    assert (tmp_path / "precious").read_text() == "precious"
    assert len((tmp_path / "out" / batch.RESULTS).read_text().splitlines()) == 2
