"""What is published: both archives build, install into fresh environments of every Python there is, and work there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

import aclnn
from tests.doors.toolchain import needs_compiler
from tests.meta.pages import ROOT, blocks, promised, read

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SHIPPED = (
    "README.md",
    "LICENSE",
    "NOTICE",
    "pyproject.toml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    ended = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@cache
def interpreter(version: str) -> str | None:
    """A Python of this version, if there is one that starts."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    found = shutil.which(f"python{version}")
    starts = found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0
    return found if starts else None


def environment(python: str, folder: Path, *packages: str) -> Path:
    """The programs of a fresh virtual environment with these packages in it."""
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages)
    return folder / "bin"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder / "probe"), "hatchling"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        pytest.skip("no package index within reach")
    programs = environment(sys.executable, folder / "builder", "hatchling")
    run(programs / "python", "-m", "hatchling", "build", "-t", "sdist", "-d", folder)
    (sdist,) = folder.glob("*.tar.gz")
    run(programs / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, sdist)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.long
def test_the_archives_hold_what_they_should(archives: tuple[Path, Path]) -> None:
    sdist, wheel = archives
    assert {aclnn.__version__} == {re.split("-", path.name.removesuffix(".tar.gz"))[1] for path in archives}
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert set(SHIPPED) <= names
    assert {"examples/ci/aclnn.yml", "tests/test_tiny.py", "docs/en/index.md"} <= names
    sources = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src").rglob("*") if p.is_file()}
    packed_sources = set(zipfile.ZipFile(wheel).namelist())
    assert {s for s in sources if not s.endswith(".pyc")} <= packed_sources
    assert not [name for name in packed_sources if not name.startswith(("aclnn/", "aclnn_cpu-"))]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
@pytest.mark.parametrize("version", PYTHONS)
def test_an_archive_installs_and_works(version: str, kind: str, archives: tuple[Path, Path], tmp_path: Path) -> None:
    """Without extras: the first example of the README, a checked run, and a comparison with its own golden."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    programs = environment(python, tmp_path / "venv", str(archives[kind == "wheel"]))
    first = next(block for block in blocks(read(ROOT / "README.md")) if block.language == "python")
    assert run(programs / "python", "-c", first.text, cwd=tmp_path).splitlines() == promised(first.text)
    assert "pass" in run(programs / "aclnn", "run", "aclnnLstmBackward", "--check", "-o", "out", cwd=tmp_path)
    assert "sound: yes" in run(programs / "aclnn", "compare", "-tp", "out", cwd=tmp_path)
    assert "numba                not installed" in run(programs / "aclnn", "env", cwd=tmp_path)


@needs_compiler
@pytest.mark.long
def test_the_recipe_of_examples_ci_from_nothing(archives: tuple[Path, Path], tmp_path: Path) -> None:
    """Whole, with the wheel in place of the published package."""
    project = shutil.copytree(ROOT / "examples" / "ci", tmp_path / "project")
    variables = {**os.environ, "ACLNN_PACKAGE": str(archives[1])}
    variables.pop("PYTHONPATH", None)
    ended = subprocess.run(["sh", "anywhere.sh"], cwd=project, env=variables, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith("3 passed, 0 failed\n")


@pytest.mark.long
def test_the_extra_fast_works_alone(archives: tuple[Path, Path], tmp_path: Path) -> None:
    programs = environment(sys.executable, tmp_path / "venv", f"{archives[1]}[fast]")
    convolution = "convolution_backward,size=16 in_channels=32 out_channels=32"
    (tmp_path / "cases.csv").write_text(f"op,sizes\nelu_backward,shape=512x512\n{convolution}\n")
    printed = run(programs / "aclnn", "run", "cases.csv", "--check", "--engine", "fast", cwd=tmp_path)
    assert "numba" in printed
    assert "tiles" in printed or "onednn" in printed  # without or with AVX-512


@pytest.mark.long
def test_the_extra_report_works_alone(archives: tuple[Path, Path], tmp_path: Path) -> None:
    programs = environment(sys.executable, tmp_path / "venv", f"{archives[1]}[report]")
    run(programs / "aclnn", "run", "elu_backward", "-o", "out", cwd=tmp_path)
    run(programs / "aclnn", "compare", "-tp", "out", "-o", "report.xlsx", cwd=tmp_path)
    assert (tmp_path / "report.xlsx").stat().st_size > 1000


def test_the_version_stands_in_one_place() -> None:
    assert 'dynamic = ["version"]' in read(ROOT / "pyproject.toml")
    assert f'__version__ = "{aclnn.__version__}"' in read(ROOT / "src" / "aclnn" / "_version.py")
    assert f"## {aclnn.__version__}" in read(ROOT / "CHANGELOG.md")
