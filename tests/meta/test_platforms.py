"""macOS and Windows, as far as Linux can tell: what they lack is hidden, and the package and its command still work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.meta.pages import ROOT, read

# The standard library and what others wrote are loaded first: they know these systems, it is ours that is asked.
HIDDEN = """
import concurrent.futures, ctypes, importlib, importlib.metadata, json, logging.handlers, mmap, multiprocessing.spawn
import os, pathlib, platform, shutil, signal, subprocess, sys, tempfile, webbrowser, zipfile
import ml_dtypes, numpy, rich.console, rich.progress, rich.table, typer, typer.main, typer.testing
try:
    import numba
    from numba.core import registry
except ImportError:
    pass

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = (
    "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC RTLD_GLOBAL RTLD_LAZY RTLD_NOLOAD RTLD_NOW "
    "chown fchmod fork forkpty getegid geteuid getgid getloadavg getpgid getsid getuid killpg lchown mkfifo mknod "
    "posix_fadvise posix_spawn pread preadv pwrite register_at_fork sched_getaffinity sched_setaffinity sched_yield "
    "setpgid setsid statvfs sysconf uname"
)
WINDOWS = {
    os: NAMES.split(),
    mmap: [name for name in dir(mmap) if name.startswith(("MADV_", "MAP_", "PROT_"))],
    signal: ["SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGUSR2", "alarm", "pthread_sigmask", "setitimer"],
}
MACOS = {os: ["sched_getaffinity", "sched_setaffinity"]}
MACHINES = {"Windows": {"x86_64": "AMD64", "aarch64": "ARM64"}, "Darwin": {"aarch64": "arm64"}}


def hide(system):
    for owner, names in (WINDOWS if system == "Windows" else MACOS).items():
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    if system == "Windows":
        sys.modules.update(dict.fromkeys(MODULES))
        os.supports_dir_fd = set()
        hide_from_mmap()
    machine = MACHINES[system].get(platform.machine(), platform.machine())
    platform.system, platform.machine = lambda: system, lambda: machine
    ctypes.CDLL = library_of(ctypes.CDLL, system)


def hide_from_mmap():
    class Mapped(mmap.mmap):
        madvise = property()  # hasattr says no

    mmap.mmap = Mapped


def library_of(real, system):
    def library(name, *args, **kwargs):
        if name is None and system == "Windows":
            raise TypeError("LoadLibrary() argument 1 must be str, not None")
        if name is not None and str(name).startswith("libgomp"):
            raise OSError("no such library")
        return real(name, *args, **kwargs)

    return library


hide(sys.argv.pop(1))
"""

RUN = HIDDEN + "from aclnn.cli import main\nmain()\n"


def on(system: str, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process that takes this system for another, which has no oneDNN either."""
    command = [sys.executable, "-c", program, system, *arguments]
    environment = {**os.environ, "ACLNN_ONEDNN": "/nowhere/libdnnl.so", **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8")


systems = pytest.mark.parametrize("system", ["Windows", "Darwin"])


@systems
def test_every_module_is_imported(system: str) -> None:
    program = """
import pkgutil, aclnn
ELSEWHERE = ("aclnn.torch", "aclnn.kernels.source", "aclnn.capi.pyacl", "aclnn.gen.__main__")

def load_all(package):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if module.name not in ELSEWHERE:
            loaded = importlib.import_module(module.name)
            if module.ispkg:
                load_all(loaded)

load_all(aclnn)
"""
    ended = on(system, HIDDEN + program)
    assert ended.returncode == 0, ended.stderr


@systems
@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_the_example_cases_are_right(system: str, engine: str, tmp_path: Path) -> None:
    if engine == "auto":
        pytest.importorskip("numba")
    out = tmp_path / "out"
    ended = on(system, RUN, "run", "examples/cases.csv", "--check", "--engine", engine, "-o", str(out))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = (out / "results.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(rows) == 25
    kernels = {row.split(",")[4] for row in rows}
    assert kernels == {"numpy"} if engine == "numpy" else {"numba", "tiles", "direct"} <= kernels


@systems
@pytest.mark.parametrize("command", ["cxx examples/cpp/elu.cpp -o", "flags --cflags --install"])
def test_the_door_for_cpp_says_that_it_needs_linux(system: str, command: str, tmp_path: Path) -> None:
    ended = on(system, RUN, *command.split(), str(tmp_path / "made"))
    assert not list(tmp_path.iterdir())
    assert (ended.returncode, ended.stdout) == (3, "")
    name = {"Darwin": "macOS"}.get(system, system)
    assert ended.stderr == (
        f"aclnn: [561000 ACLNN_ERR_INNER] C++ programs can be built and run on Linux only, and this is {name}; Python, "
        "PyTorch and the other commands work here.\n"
    )


@systems
def test_env_tells_where_it_is(system: str) -> None:
    ended = on(system, RUN, "env")
    assert ended.returncode == 0, ended.stderr
    assert f"platform             {system} " in ended.stdout


def table_of_platforms(page: str) -> list[str]:
    """The rows of the table that names Windows."""
    tables = [part.splitlines() for part in read(ROOT / page).split("\n\n") if part.startswith("|")]
    return next(rows for rows in tables if any(row.startswith("| Windows") for row in rows))


@pytest.mark.parametrize(("first", "readme"), [("docs/en/index.md", "README.md"), ("docs/zh/index.md", "README.zh.md")])
def test_readme_and_first_page_have_one_table_of_platforms(first: str, readme: str) -> None:
    assert table_of_platforms(first) == table_of_platforms(readme)
    english = table_of_platforms("README.md")
    assert len(english) == len(table_of_platforms(readme)) == 7
    for row, other in zip(english, table_of_platforms(readme), strict=True):
        assert re.findall("`make [a-z-]+`", row) == re.findall("`make [a-z-]+`", other)


def test_the_workflow_has_a_runner_of_every_platform_and_runs_what_is_there() -> None:
    job = yaml.safe_load(read(ROOT / ".github" / "workflows" / "platforms.yml"))["jobs"]["test"]
    systems = job["strategy"]["matrix"]["system"]
    assert [name.split("-")[0] for name in systems] == ["ubuntu", "ubuntu", "macos", "windows"]
    assert systems[1].endswith("-arm")
    commands = " ".join(step.get("run", "") for step in job["steps"])
    paths = re.findall(r"(?:tests|examples)/\S+", commands)
    assert len(paths) >= 9
    assert all((ROOT / path).exists() for path in paths)
