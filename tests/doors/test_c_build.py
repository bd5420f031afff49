"""Building the library and finding it (flags, cxx, CMake, pkg-config, set_env.sh), and what is said without a tool."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import aclnn
from aclnn.base.folder import PrivateFolder
from aclnn.capi import build, interpreter, prefix
from aclnn.cli import cxx, flags
from tests.doors.toolchain import PROGRAMS, built, needs_compiler, run_program

COMPUTED = "[2, -0, 0, 1]\n"

app = typer.Typer()
app.command("flags")(flags.flags)
app.command("cxx", context_settings=cxx.CONTEXT)(cxx.cxx)


def command(*arguments: str) -> str:
    ended = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


@needs_compiler
def test_flags() -> None:
    folder = command("flags", "--prefix").strip()
    assert Path(folder) == built()
    assert command("flags", "--cflags") == f"-I{folder}/include\n"
    both = command("flags", "--cflags", "--libs").split()
    assert both[-3:] == ["-lascendcl", "-lnnopbase", "-lopapi"]
    assert CliRunner().invoke(app, ["flags"]).exit_code == 2


@needs_compiler
def test_cxx_passes_every_option_on(tmp_path: Path) -> None:
    target = tmp_path / "tiny"
    command("cxx", str(PROGRAMS / "tiny.cpp"), "-o", str(target), "-std=c++11", "-pthread", "-O2", "-Wextra", "-DX=1")
    assert run_program([target], {}).stdout == COMPUTED
    assert CliRunner().invoke(app, ["cxx"]).exit_code == 2
    assert CliRunner().invoke(app, ["cxx", str(tmp_path / "nothing.cpp")]).exit_code == 1


@needs_compiler
def test_every_library_name_and_header_is_there() -> None:
    names = {p.name for p in (built() / "lib64").iterdir()}
    assert names == {prefix.LIBRARY, prefix.SAME, *prefix.OTHER_NAMES}
    headers = {str(p.relative_to(built() / "include")) for p in (built() / "include").rglob("*.h")}
    for name in ("acl", "acl_base", "acl_rt", "acl_base_rt", "acl_op", "acl_op_compiler", "acl_mdl"):
        assert f"acl/{name}.h" in headers
    assert {"aclnn/acl_meta.h", "aclnn/aclnn_base.h", "aclnnop/aclnn_elu_backward.h"} <= headers


@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None, reason="binutils are not installed")
def test_the_library_exports_our_functions_alone() -> None:
    command = ["nm", "-D", "--defined-only", "--format=posix", str(built() / "lib64" / prefix.LIBRARY)]
    names = [line.split()[0] for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    assert "aclnnEluBackwardGetWorkspaceSize" in names
    assert [name for name in names if not name.startswith("acl")] == []


@needs_compiler
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_set_env(shell: str, tmp_path: Path) -> None:
    program = tmp_path / "tiny"
    sources = f"{PROGRAMS / 'tiny.cpp'} -o {program}"
    script = f"""set -eu
. {built()}/set_env.sh
g++ {sources} -I$ASCEND_HOME_PATH/include -L$ASCEND_TOOLKIT_HOME/lib64 -lascendcl -lnnopbase -lopapi_nn -lopapi_math
test -f $ASCEND_CUSTOM_PATH/include/acl/acl.h
{program}"""
    ended = run_program([shell, "-c", script], {"PATH": os.environ["PATH"]})
    assert (ended.stdout, ended.stderr) == (COMPUTED, "")
    assert command("flags", "--env") == (built() / "set_env.sh").read_text()


@needs_compiler
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
def test_pkg_config() -> None:
    env = {**os.environ, "PKG_CONFIG_PATH": str(built() / "lib" / "pkgconfig")}
    asked = ["pkg-config", "--cflags", "--libs", "--print-errors", f"aclnn >= {aclnn.__version__}"]
    found = subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout.split()
    assert found == [*prefix.compile_flags(built()), *prefix.link_flags(built())]


@needs_compiler
@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("target", ["aclnn::aclnn", "aclnn::ascendcl aclnn::nnopbase aclnn::opapi_nn"])
def test_cmake(target: str, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(tiny CXX)\nfind_package(aclnn 0.1 REQUIRED)\n"
        f"add_executable(tiny {PROGRAMS / 'tiny.cpp'})\ntarget_link_libraries(tiny PRIVATE {target})\n"
    )
    made = tmp_path / "made"
    configure = ["cmake", "-S", str(tmp_path), "-B", str(made), f"-DCMAKE_PREFIX_PATH={built()}"]
    for step in (configure, ["cmake", "--build", str(made)]):
        ended = subprocess.run(step, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert run_program([made / "tiny"], {}).stdout == COMPUTED


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(aclnn.AclnnError, match="on Debian and Ubuntu it comes with the package g\\+\\+") as refused:
        build.compiler()
    assert refused.value.code == 561000
    monkeypatch.setenv("CXX", "no-such-compiler -O3")
    with pytest.raises(aclnn.AclnnError, match="no C\\+\\+ compiler 'no-such-compiler'"):
        build.compiler()


def test_without_a_shared_libpython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "libpython", lambda: None)
    package = f"libpython{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(aclnn.AclnnError, match=re.escape(f"comes with the package {package}.")):
        build.build()


def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho this is broken >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "cache"))
    build._compiler_version.cache_clear()
    with pytest.raises(aclnn.AclnnError, match="this is broken"):
        build.build()
    build._compiler_version.cache_clear()
    assert [p.name for p in (tmp_path / "cache" / "capi").iterdir()] == ["lock"]  # nothing half-built stays behind


def test_the_folder_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "cache"))
    made = PrivateFolder("capi").path
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.chmod(0o777)
    with pytest.raises(OSError, match="only its user can write to"):
        PrivateFolder("capi")
    with pytest.raises(aclnn.AclnnError, match="has no place to live"):
        build.build()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A cache of its own, and a compiler that is done at once: it writes what it is told to, nothing more."""
    script = tmp_path / "compiler"
    script.write_text('#!/bin/sh\nfor last; do :; done\n[ "$last" = --version ] || echo ours > "$last"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "cache"))
    build._compiler_version.cache_clear()
    monkeypatch.setattr(interpreter, "libpython", lambda: "/somewhere/libpython.so")
    yield tmp_path / "cache" / "capi"
    build._compiler_version.cache_clear()


linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the C door needs Linux")


def library_in(made: Path) -> str:
    return (made / "lib64" / prefix.LIBRARY).read_text()


@linux_only
@pytest.mark.parametrize("umask", [0, 0o002])
def test_nobody_else_can_write_to_what_was_built(quick: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = build.build()
    finally:
        os.umask(before)
    everything = [quick.parent, quick, *quick.rglob("*")]
    assert made / "lib64" / prefix.LIBRARY in everything
    assert [p for p in everything if not p.is_symlink() and p.stat().st_mode & 0o022] == []


@linux_only
@pytest.mark.parametrize("planted", ["a link", "a file", "a folder others can write to"])
def test_a_prefix_that_is_not_ours_is_built_anew(quick: Path, planted: str, tmp_path: Path) -> None:
    made = build.build()
    foreign = tmp_path / "foreign"
    made.rename(foreign)
    (foreign / "lib64" / prefix.LIBRARY).write_text("foreign")
    if planted == "a link":
        made.symlink_to(foreign)
    elif planted == "a file":
        made.write_text("foreign")
    else:
        shutil.copytree(foreign, made, symlinks=True)
        made.chmod(0o777)
    assert not build.is_built()
    assert build.build() == made
    assert build.is_built()
    assert library_in(made) == "ours\n"
    assert library_in(foreign) == "foreign"
    assert sorted(p.name for p in quick.iterdir()) == sorted(["lock", made.name])


@linux_only
def test_a_link_in_the_place_of_the_lock_is_not_followed(quick: Path, tmp_path: Path) -> None:
    PrivateFolder("capi")
    (tmp_path / "precious").write_text("precious")
    (quick / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(aclnn.AclnnError, match=r"cannot be kept in .*capi: OSError: .*symbolic links"):
        build.build()
    assert (tmp_path / "precious").read_text() == "precious"


@linux_only
@pytest.mark.parametrize("when", ["while it builds", "when it is built"])
def test_a_cache_that_changes_places_is_not_handed_out(quick: Path, when: str) -> None:
    """What others put in the place of a parent is neither written to nor named as ours."""
    cache, ours = quick.parent, quick.parent.with_name("ours")

    def exchange(done: int, total: int) -> None:
        if done == (1 if when == "while it builds" else total):
            cache.rename(ours)
            (cache / "capi").mkdir(parents=True)

    with pytest.raises(aclnn.AclnnError, match=r"cannot be kept in|others can rename"):
        build.build(exchange)
    assert list((cache / "capi").iterdir()) == []
    (made,) = [p for p in (ours / "capi").iterdir() if p.name != "lock"]
    assert library_in(made) == "ours\n"


@linux_only
def test_what_killed_builds_left_is_swept(quick: Path) -> None:
    program = (
        "import os, signal, sys; from aclnn.capi import build, interpreter\n"
        "interpreter.libpython = lambda: '/somewhere/libpython.so'\n"
        "build.build(lambda done, total: done < 2 or os.kill(os.getpid(), signal.SIGKILL))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    (left,) = quick.glob("building-*")
    assert list(left.glob("work/*.o"))
    made = build.build()
    assert sorted(p.name for p in quick.iterdir()) == sorted(["lock", made.name])


def test_the_recorded_header_takes_any_path() -> None:
    odd = interpreter.current()._replace(executable='/a "b"/\\ü/python')
    text = build.recorded(odd)
    line = next(line for line in text.splitlines() if line.startswith("#define ACLNN_CPU_PYTHON "))
    octal = line.split('"')[1]
    assert octal.isascii()
    assert octal.encode().decode("unicode_escape").encode("latin-1").decode() == odd.executable


@pytest.mark.long
@needs_compiler
def test_two_builds_at_once(tmp_path: Path) -> None:
    env = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path)}
    program = [sys.executable, "-c", "from aclnn.capi.build import build; print(build())"]
    both = [subprocess.Popen(program, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert len({p.communicate()[0] for p in both}) == 1
    assert [p.returncode for p in both] == [0, 0]
    assert len(list((tmp_path / "capi").iterdir())) == 2  # the prefix, and the lock
