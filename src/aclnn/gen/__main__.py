"""python -m aclnn.gen [--check]: writes every generated file, or says which are stale (exit 1)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from aclnn.gen import docs, headers, operators, pyacl

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]

TARGETS: dict[Path, Callable[[], str]] = {
    PACKAGE / "_operators.py": operators.render,
    **headers.targets(),
    **pyacl.targets(),
    **docs.targets(),
}


def main(arguments: list[str]) -> int:
    stale = []
    for path, render in TARGETS.items():
        text = _formatted(render()) if path.suffix == ".py" else render()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    for path in stale:
        print(("stale: " if "--check" in arguments else "wrote ") + str(path.relative_to(ROOT)))
    return 1 if stale and "--check" in arguments else 0


def _formatted(source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "generated.py", "--line-length", "120", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
