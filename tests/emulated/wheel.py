"""The wheel, as the emulated machine's own pip installs it into an empty folder: with nothing else there, it works."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.emulated.machines import BUILD, ROOT, Machine, launcher
from tests.meta.pages import blocks, promised, read

Run = Callable[[str, list[str], Path], int]


def install_and_try(machine: Machine, run: Run) -> int:
    """The worst code of the steps: pip, the first example of the README, a checked run on compiled code, a verdict."""
    folder = BUILD / machine.name / "installed"
    shutil.rmtree(folder, ignore_errors=True)
    packages, empty = folder / "packages", folder / "empty"
    python = launcher(machine, folder, packages)
    empty.mkdir()
    aclnn = str(packages / "bin" / "aclnn")
    first = next(block for block in blocks(read(ROOT / "README.md")) if block.language == "python").text
    steps = {
        "pip install of the wheel": [str(python), "-m", "pip", "install", "-q", "-t", str(packages), _wheel(folder)],
        "the first example": [str(python), "-c", _asserted(first, packages)],
        "aclnn env": [aclnn, "env"],
        "aclnn run": [aclnn, "run", "aclnnEluBackward", "--check", "--engine", "fast", "-o", "out"],
        "aclnn compare": [aclnn, "compare", "-tp", "out"],
    }
    return max(run(f"wheel: {name}", command, empty) for name, command in steps.items())


def _wheel(folder: Path) -> str:
    """The wheel with its extra, as pip is asked for it; this machine builds it, as it is the same for every machine."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    return f"{wheel}[fast]"


def _asserted(example: str, packages: Path) -> str:
    """An example that ends with a failure if it prints anything but what it promises, or is not of this folder."""
    return (
        "import contextlib, io\nprinted = io.StringIO()\n"
        f"with contextlib.redirect_stdout(printed):\n    exec({example!r})\n"
        f"assert printed.getvalue().splitlines() == {promised(example)!r}, printed.getvalue()\n"
        f"assert aclnn.__file__.startswith({str(packages)!r}), aclnn.__file__\n"
    )
