"""requirements/lock.txt: one version with hashes of everything that the package and its extras fast and report need."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
PINNED = {
    canonicalize_name(name): (version, rest.count("--hash=sha256:"))
    for name, version, rest in re.findall(r"^([\w.-]+)==([^\s;\\]+)((?:.*\\\n)*.*)", LOCK, re.MULTILINE)
}


def wanted() -> list[Requirement]:
    tomllib = pytest.importorskip("tomllib") if sys.version_info >= (3, 11) else pytest.importorskip("tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [Requirement(text) for text in (*project["dependencies"], *extras["fast"], *extras["report"])]


def test_the_lock_covers_what_the_project_names() -> None:
    for requirement in wanted():
        name = canonicalize_name(requirement.name)
        assert name in PINNED, f"{name} is not locked: python requirements/lock.py"
        assert requirement.specifier.contains(Version(PINNED[name][0])), f"{name} {PINNED[name][0]} does not do"


def test_every_line_is_a_version_with_hashes_and_no_place_of_a_machine() -> None:
    requirements = [line for line in LOCK.splitlines() if line and line[0] not in " #"]
    assert len(requirements) == len(PINNED)
    assert all(hashes for _, hashes in PINNED.values())
    assert not re.search(r"://|file:|--index|--find-links|--trusted|(^|\s)/\w", LOCK, re.MULTILINE)
