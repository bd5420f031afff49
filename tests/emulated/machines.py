"""The machines that are emulated, and the Python of each."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import numpy as np

from tests.emulated.packages import unpacked, wheels

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "emulated"


class Machine(NamedTuple):
    """A processor as qemu names it, and how many rows of the example cases may run on numpy there."""

    name: str
    instructions: str
    emulator: str
    processor: str
    on_numpy: int
    foreign: bool = False  # it cannot run this machine's own Python


_HASWELL = "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"  # qemu warns of what it does not have
MACHINES = {
    "arm": Machine("arm", "Linux on ARM, NEON", "qemu-aarch64-static", "neoverse-n1", 4, foreign=True),
    "nehalem": Machine("nehalem", "x86 of 2008, SSE4", "qemu-x86_64-static", "Nehalem", 4),
    "haswell": Machine("haswell", "x86 of 2013, AVX2", "qemu-x86_64-static", _HASWELL, 4),
}

# LLVM reads which processor this is from here, and qemu looks for files under its prefix first.
_CPUINFO = """processor\t: 0
Features\t: fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""

_LAUNCHER = """#!/bin/sh
export PYTHONPATH={path}${{PYTHONPATH:+:$PYTHONPATH}}{variables}
exec {command} "$@"
"""

# What a test starts as sys.executable must be emulated too.
_SITE = """import sys

sys.executable = {launcher!r}
"""


def python_of(machine: Machine) -> Path:
    """A program that is this machine's Python, with numba and pytest, and with our sources first on its path."""
    python, _ = _interpreter(machine)
    path = [ROOT / "src"]
    if machine.foreign:
        path.append(wheels(BUILD / "wheels", "aarch64", python.name.removeprefix("python"), _requirements()))
    return launcher(machine, BUILD / machine.name, *path)


def _interpreter(machine: Machine) -> tuple[Path, Mapping[str, str | Path]]:
    """A Python that the machine runs, and the variables it needs."""
    if machine.foreign:
        prefix = unpacked(BUILD / "arm64", "arm64", ["python3", "python3-pip", "libgomp1", "libstdc++6"])
        (prefix / "proc").mkdir(exist_ok=True)
        (prefix / "proc" / "cpuinfo").write_text(_CPUINFO, encoding="utf-8")
        python = max((prefix / "usr" / "bin").glob("python3.[0-9]*[0-9]"))
        return python, {"QEMU_LD_PREFIX": prefix, "PYTHONHOME": prefix / "usr"}
    if platform.machine() != "x86_64":
        raise SystemExit(f"{machine.name} runs this machine's own Python, which must be one for x86_64.")
    return Path(sys.executable), {"NPY_DISABLE_CPU_FEATURES": _vectors_of_numpy()} if machine.name == "haswell" else {}


def _vectors_of_numpy() -> str:
    """What numpy calls AVX2. qemu 7.2 gathers wrongly with it: np.tanh of every fourth float64, and so our reference,
    would be off by more than 1."""
    known = np.show_config(mode="dicts")["SIMD Extensions"]
    return next(name for name in ("X86_V3", "AVX2") if name in (*known["found"], *known.get("not found", ())))


def launcher(machine: Machine, folder: Path, *path: Path) -> Path:
    """A program in this folder that is the machine's Python, and imports from these places first."""
    program, site = folder / "bin" / "python", folder / "site"
    for place in (program.parent, site):
        place.mkdir(parents=True, exist_ok=True)
    python, variables = _interpreter(machine)
    (site / "sitecustomize.py").write_text(_SITE.format(launcher=str(program)), encoding="utf-8")
    joined = quote(":".join(map(str, (site, *path))))
    more = "".join(f" {name}={quote(str(value))}" for name, value in variables.items())
    command = shlex.join([_emulator(machine), "-cpu", machine.processor, str(python)])
    program.write_text(_LAUNCHER.format(path=joined, variables=more, command=command), encoding="utf-8")
    program.chmod(0o755)
    return program


def _emulator(machine: Machine) -> str:
    """qemu as it is installed, else as Debian has it."""
    found = shutil.which(machine.emulator)
    return found or str(_qemu() / "usr" / "bin" / machine.emulator)


def _qemu() -> Path:
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    return unpacked(BUILD / "qemu", architecture, ["qemu-user-static"], with_what_they_need=False)


def _requirements() -> list[str]:
    """What the package, its compiled kernels and its tests need; pip would judge conditions by this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["fast"], *extras["test"]]
    return [name for name in wanted if ";" not in name]
