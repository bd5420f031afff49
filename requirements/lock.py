"""Writes lock.txt: the versions pip chooses today for the package and its extras fast and report, with their hashes.

    python requirements/lock.py

One file per package: the one that pip takes on this machine, so that it is written on Linux x86-64 with Python 3.11.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import tomllib

HERE = Path(__file__).resolve().parent


def wanted() -> list[str]:
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *extras["fast"], *extras["report"]]


def chosen(requirements: list[str]) -> list[tuple[str, str, str]]:
    """Name, version and SHA-256 of everything that would be installed into an empty environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    report = json.loads(subprocess.run([*command, *requirements], check=True, capture_output=True, text=True).stdout)
    found = ((item["metadata"], item["download_info"]["archive_info"]["hashes"]) for item in report["install"])
    return sorted((about["name"].lower(), about["version"], hashes["sha256"]) for about, hashes in found)


if __name__ == "__main__":
    lines = [f"{name}=={version} \\\n    --hash=sha256:{digest}\n" for name, version, digest in chosen(wanted())]
    (HERE / "lock.txt").write_text("".join(lines), encoding="utf-8")
