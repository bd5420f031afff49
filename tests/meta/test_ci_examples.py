"""examples/ci as a user takes it: copied into a folder of its own and run there, as a person and as CI does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from aclnn.base import folder
from tests.doors.toolchain import needs_compiler
from tests.meta.pages import ROOT

CI = ROOT / "examples" / "ci"
PRODUCTS = ("A2", "A3")


def workflow() -> Any:
    return yaml.safe_load((CI / "aclnn.yml").read_text(encoding="utf-8"))


def steps() -> list[str]:
    return [step["run"] for step in workflow()["jobs"]["test"]["steps"] if "run" in step]


def run(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """In a shell whose `aclnn` is that of this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CI, tmp_path / "project"))


@needs_compiler
def test_the_script_names_what_failed_and_goes_on(project: Path) -> None:
    (project / "tests" / "fails.cpp").write_text("int main() { return 3; }")
    (project / "tests" / "is_no_program.cpp").write_text("this is not C++")
    ended = run("./ci.sh", project)
    assert ended.returncode == 1
    verdicts = [line for line in ended.stdout.splitlines() if line.startswith(("pass:", "FAIL:"))]
    assert verdicts == ["FAIL: tests/fails.cpp", "FAIL: tests/is_no_program.cpp", "pass: tests/refuses_double.cpp"]
    assert ended.stdout.endswith("3 passed, 0 failed\n")


def test_the_workflow_asks_for_products_and_extras_that_exist() -> None:
    from aclnn.base.device import find

    job = workflow()["jobs"]["test"]
    assert job["strategy"]["matrix"]["product"] == list(PRODUCTS)
    assert all(find(name).name for name in PRODUCTS)
    assert steps()[0] == 'pip install "aclnn-cpu[fast]"'
    assert all({"uses", "run"} & step.keys() for step in job["steps"])


def recipe() -> list[str]:
    """The commands for any other server."""
    lines = (CI / "anywhere.sh").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@needs_compiler
def test_the_recipe_for_other_servers_step_by_step(project: Path) -> None:
    """What needs no network: every command behind the installation, in one shell."""
    settings, *installation = recipe()[:4]
    assert settings == "set -eu"
    assert installation == [
        "python3 -m venv .venv",
        ". .venv/bin/activate",
        'pip install "${ACLNN_PACKAGE:-aclnn-cpu[fast]}"',
    ]
    cache = str(folder.root())  # that of the other tests: building the library again takes half a minute
    ended = run("\n".join([settings, *recipe()[4:]]), project, ACLNN_CACHE_DIR=cache)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"cache                {cache} (" in ended.stdout
    assert ended.stdout.endswith("3 passed, 0 failed\n")


@needs_compiler
@pytest.mark.parametrize("product", ["A2", pytest.param("A3", marks=pytest.mark.long)])
def test_the_workflow_step_by_step(product: str, project: Path) -> None:
    """What needs no network: every command behind the installation, in the environment of the job."""
    install, *others = steps()
    assert install.startswith("pip install")
    for command in others:
        ended = run(command, project, ACLNN_PRODUCT=product)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"on Atlas {product} it must be" in ended.stdout
    assert "pass: tests/refuses_double.cpp\n" in ended.stdout
    assert ended.stdout.endswith("3 passed, 0 failed\n")
