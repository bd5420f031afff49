"""Programs for another processor: Debian's packages and Python's wheels, fetched by name once and unpacked in a folder.

Nothing is installed on this machine, and nobody needs to be root: apt works on lists and a cache of its own, as if for
an empty machine of the other kind, and packages are only unpacked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_APT = """
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
"""
_PLATFORMS = ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34")


def made_once(folder: Path, recipe: str, make: Callable[[Path], None]) -> Path:
    """A folder as this recipe makes it: anew if it is not there, is not whole, or was made by another recipe."""
    stamp = folder / "made-from"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != recipe:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        stamp.write_text(recipe, encoding="utf-8")
    return folder


def unpacked(folder: Path, architecture: str, names: Sequence[str], with_what_they_need: bool = True) -> Path:
    """The files of Debian packages, as they would lie under /."""

    def make(folder: Path) -> None:
        apt = folder / "apt"
        for place in ("state/lists/partial", "cache/archives/partial"):
            (apt / place).mkdir(parents=True)
        (apt / "status").touch()
        (apt / "apt.conf").write_text(_APT.format(folder=apt, architecture=architecture), encoding="utf-8")
        _apt(apt, "update")
        if with_what_they_need:
            _apt(apt, "install", "--yes", "--download-only", *names)
        else:
            _apt(apt, "download", *names)
        for package in sorted(apt.rglob("*.deb")):
            _run("dpkg-deb", "-x", str(package), str(folder))
        shutil.rmtree(apt)

    return made_once(folder, f"{architecture} {with_what_they_need} {' '.join(names)}\n", make)


def wheels(folder: Path, machine: str, python: str, requirements: Sequence[str]) -> Path:
    """Python packages for another machine, ready to be imported there."""

    def make(folder: Path) -> None:
        where = [f"--platform={platform}_{machine}" for platform in _PLATFORMS]
        which = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *where]
        _run(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *which, *requirements)

    return made_once(folder, f"{machine} {python} {' '.join(requirements)}\n", make)


def _apt(folder: Path, *command: str) -> None:
    _run("env", f"APT_CONFIG={folder}/apt.conf", "apt-get", "--quiet", *command, cwd=folder / "cache" / "archives")


def _run(*command: str, cwd: Path | None = None) -> None:
    """Runs a command; what it printed is only shown if it fails."""
    ended = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{ended.stdout}\nit ended with code {ended.returncode}.")
