"""`aclnn flags --install`: what clients look for is there, needs no cache, and goes away again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import aclnn
from aclnn.capi import install
from aclnn.cli import flags
from tests.doors import installed
from tests.doors.toolchain import PROGRAMS, built, needs_compiler, run_program

pytestmark = needs_compiler

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "clients"
COMPUTED = "[2, -0, 0, 1]\n"

app = typer.Typer()
app.command("flags")(flags.flags)


def test_the_whole_layout_is_there() -> None:
    folder = installed.prefix()
    env = installed.sourced(folder)
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME"):
        assert env[name] == str(folder)
    assert (Path(env["ASCEND_OPP_PATH"]) / "version.info").is_file()
    assert env["PYTHONPATH"] == str(folder / "python" / "site-packages")
    for name in ("ascendcl", "nnopbase", "opapi", "opapi_nn", "opapi_math", "acl_rt"):
        assert (Path(env["LD_LIBRARY_PATH"]) / f"lib{name}.so").is_file()
    assert f"version={aclnn.__version__}" in (folder / "version.info").read_text()
    assert len(list(folder.glob("*-linux/lib64/libopapi.so"))) == 1


def test_a_program_built_as_for_the_vendors_toolkit_names_its_libraries_and_runs(tmp_path: Path) -> None:
    env = installed.sourced(installed.prefix())
    link = '-I"$ASCEND_HOME_PATH/include" -L"$ASCEND_HOME_PATH/lib64" -lascendcl -lnnopbase -lopapi'
    target = tmp_path / "tiny"
    for option in ("-Wl,--as-needed", "-Wl,--no-as-needed"):  # compilers differ in what they do by themselves
        command = f'g++ "$1" -o "$2" {option} {link}'
        subprocess.run(["sh", "-c", command, "sh", PROGRAMS / "tiny.cpp", target], env=env, check=True)
        ended = run_program([target], env)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, COMPUTED, "")
    needed = subprocess.run(["readelf", "-d", target], capture_output=True, text=True, check=True).stdout
    for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
        assert f"[{name}]" in needed


def test_the_framework_client(tmp_path: Path) -> None:
    folder, target = installed.prefix(), tmp_path / "framework"
    strict = ["-std=c++14", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'include'}", "-ldl", "-pthread"]
    subprocess.run(["g++", str(EXAMPLES / "framework.cpp"), *strict, "-o", str(target)], check=True)
    env = {"ASCEND_HOME_PATH": str(folder), "ACLNN_CHECK": "1"}
    ended = run_program([target, "400"], env)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "400 of 400 calls right\n", "")
    lost = run_program([target, "2"], {"ASCEND_HOME_PATH": str(tmp_path)})
    assert lost.returncode == 1
    assert "libascendcl.so" in lost.stderr


def test_the_command_installs_says_where_and_removes(tmp_path: Path) -> None:
    target = tmp_path / "toolkit"
    for _ in range(2):  # over an earlier one of ours, too
        ended = CliRunner().invoke(app, ["--install", str(target), "--prefix"], catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
        assert f". {target}/set_env.sh" in ended.output
        assert (target / "lib64" / "libopapi.so").is_file()
    mine = target / "include" / "mine.h"
    mine.write_text("mine")
    ended = CliRunner().invoke(app, ["--uninstall", str(target)], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert "files of others stay (1)" in ended.output
    assert [p for p in target.rglob("*") if p.is_file()] == [mine]
    shutil.rmtree(target)


def test_what_is_not_ours_stays_as_it_is(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "version.info").write_text("theirs")
    places = {
        theirs: "not empty and not ours",
        theirs / "version.info": "is a file; choose a folder",
        theirs / "version.info/x": "nothing",
    }
    for place, sentence in places.items():
        with pytest.raises(aclnn.AclnnError, match=sentence):
            install.install(built(), place)
    for place, sentence in ((theirs, "was not made by"), (tmp_path / "nowhere", "is not there; nothing was removed")):
        with pytest.raises(aclnn.AclnnError, match=sentence):
            install.uninstall(place)
    assert [p.name for p in tmp_path.rglob("*")] == ["theirs", "version.info"]


@pytest.mark.parametrize("line", ["../precious", "lib64/../../precious", "out/precious", "/etc/hostname"])
def test_a_list_that_leads_out_of_the_folder_removes_nothing(line: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    target = tmp_path / "target"
    target.mkdir()
    (target / "out").symlink_to(tmp_path)
    (target / install.MANIFEST).write_text(line + "\n")
    with pytest.raises(aclnn.AclnnError, match="which is not in"):
        install.uninstall(target)
    assert (tmp_path / "precious").read_text() == "precious"


def test_an_install_that_was_cut_off_can_be_repeated(tmp_path: Path) -> None:
    target = install.install(built(), tmp_path / "toolkit")
    (target / "lib64" / "libascendcl.so").unlink()
    install.install(built(), target)
    assert (target / "lib64" / "libascendcl.so").is_file()
    assert install.uninstall(target) == []
    assert not target.exists()
