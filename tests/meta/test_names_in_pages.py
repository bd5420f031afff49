"""Pages name only what is there: functions, variables, targets, commands and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aclnn
from aclnn.cli.app import app
from tests.meta.pages import ROOT, read

PAGES = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
PAGES = sorted(p for p in PAGES if p.name != "operator.md")  # that one makes files of its own
SOURCES = [p for p in (ROOT / "src").rglob("*") if p.suffix in (".py", ".cpp", ".h")]
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "base", "contract", "kernels", "ops", "golden", "runtime")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_functions_are_there(page: Path) -> None:
    named = set(re.findall(r"\baclnn\.([a-z_]\w*)", read(page))) - {"torch", "yml", "gen"}
    assert [name for name in named if not hasattr(aclnn, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_targets_and_commands_are_there(page: Path) -> None:
    text, makefile = read(page), read(ROOT / "Makefile")
    targets = set(re.findall(r"`make ([a-z-]+)", text))
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    commands = set(re.findall(r"(?:`|^)aclnn ([a-z]+)", text, re.MULTILINE))
    assert commands <= {command.name for command in app.registered_commands}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_variables_are_read_somewhere(page: Path) -> None:
    code = "".join(map(read, SOURCES))
    assert [name for name in set(re.findall(r"\bACLNN_[A-Z_]+", read(page))) if name not in code] == []


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_files_are_there(page: Path) -> None:
    named = set(re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w/.]+)`", read(page)))
    named = {name for name in named if "/results" not in name}  # those are written by the commands that the pages name
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "src" / "aclnn"))]
    assert missing == []
