"""Every file comes through one gate: regular, of bounded size, depth and growth, each once."""

from __future__ import annotations

import ast
import io
import json
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.base.device import CPU
from aclnn.cases.batch import Options, run_table
from aclnn.cases.table import read_table
from aclnn.golden.compare import compare
from aclnn.golden.read import containers, untrusted
from tests.golden.planting import planted

SOURCES = Path(untrusted.__file__).parents[2]
READERS = sorted(p for room in ("cases", "golden", "cli") for p in (SOURCES / room).rglob("*.py"))
OPENING = ("open", "fdopen", "read_text", "read_bytes", "memmap", "fromfile", "mmap", "ZipFile", "is_zipfile")
OPENING += ("iterdir", "scandir", "listdir", "glob", "rglob", "walk", "loadtxt", "genfromtxt", "np.load", "json.load")
OURS = {"golden/show/page.py": ("read_text",), "cli/environment.py": ("open", "rglob")}
"""Our own template; /proc/cpuinfo, and the cache, whose size is told."""
ELU = {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False}


def openings(source: str) -> Iterator[str]:
    """Calls that open, map or list something by name; not those that write."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            writes = any(isinstance(a, ast.Constant) and a.value in ("w", "wb", "a") for a in node.args)
            known = function in OPENING or function.rpartition(".")[2] in OPENING
            if known and not writes and function != "packed.open":  # of an archive that came through the gate
                yield function.rpartition(".")[2]


@pytest.mark.parametrize("path", READERS, ids=lambda p: p.name)
def test_no_reader_opens_a_file_any_other_way(path: Path) -> None:
    name = path.relative_to(SOURCES).as_posix()
    if name == "golden/read/untrusted.py":
        return
    assert [o for o in openings(path.read_text(encoding="utf-8")) if o not in OURS.get(name, ())] == []


def test_the_search_finds_what_it_looks_for() -> None:
    text = "p.open(); open('x'); p.open('w'); np.memmap(p); p.read_text(); zipfile.ZipFile(p); np.load(p); p.iterdir()"
    assert list(openings(text)) == ["open", "open", "memmap", "read_text", "ZipFile", "load", "iterdir"]


READ: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(containers.SUFFIXES, containers.read),
    ".csv": lambda path: read_table(path, CPU),
    ".json": lambda path: compare(folder_with(path)),
    "results.csv": lambda path: list(run_table(table(path.parent), Options(out=path.parent, resume=True))),
}


def folder_with(description: Path) -> Path:
    np.save(description.parent / "gradInput.npy", np.ones(2, np.float32))
    return description.rename(description.parent / "case.json").parent


def table(folder: Path) -> Path:
    (folder / "cases.csv").write_text("op\naclnnElu\n")
    return folder / "cases.csv"


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("make", [a_pipe, a_device, a_socket])
@pytest.mark.parametrize("kind", READ)
def test_only_regular_files_are_read(tmp_path: Path, kind: str, make: Callable[[Path], None]) -> None:
    path = tmp_path / (kind if kind == "results.csv" else f"x{kind}")
    make(path)
    with pytest.raises(aclnn.AclnnError, match="and only regular files are read"):
        READ[kind](path)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes by name")
def test_a_pipe_that_takes_the_place_of_a_file_holds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "x.npy")
    (tmp_path / "file").write_bytes(b"")
    regular = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda *_: regular)
    with pytest.raises(aclnn.AclnnError, match="it is a pipe, and only regular files"):
        containers.read(tmp_path / "x.npy")


def test_texts_lines_and_folders_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.truncate(untrusted.LONGEST_TEXT + 1)
    with pytest.raises(aclnn.AclnnError, match="16777217 bytes; a text has at most 16777216"):
        read_table(path, CPU)
    path.write_text("op\n" + "\x85" * untrusted.MOST_LINES)
    with pytest.raises(aclnn.AclnnError, match="200001 lines; a table has at most 200000"):
        read_table(path, CPU)
    monkeypatch.setattr(untrusted, "MOST_ENTRIES", 3)
    for name in "abcd":
        (tmp_path / name).touch()
    with pytest.raises(aclnn.AclnnError, match="more than 3 entries"):
        compare(tmp_path)


def test_reading_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.ones(9))
    monkeypatch.setattr(untrusted, "PATIENCE", -1.0)
    with pytest.raises(aclnn.AclnnError, match="took longer than -1 s"):
        containers.read(tmp_path / "x.npz")


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


METHODS = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
MEASURED = """
import sys, time
from pathlib import Path
import aclnn
from aclnn.golden.read import containers
from tests.peak import peak_kilobytes
before, began = peak_kilobytes(), time.monotonic()
try:
    containers.read(Path(sys.argv[1]))
except aclnn.AclnnError as error:
    print(error.message)
print((peak_kilobytes() - before) // 1024, int(time.monotonic() - began))
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_only_stored_and_deflated_members_are_unpacked(tmp_path: Path, method: str, suffix: str) -> None:
    if suffix == ".pt":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    with zipfile.ZipFile(tmp_path / f"x{suffix}", "w", METHODS[method]) as packed:
        packed.writestr("x.npy", npy(np.zeros(3)))
    with pytest.raises(aclnn.AclnnError, match=f"packed with {method}; only stored and deflated members are read"):
        containers.read(tmp_path / f"x{suffix}")


@pytest.mark.skipif(sys.platform == "win32", reason="memory is not measured there")
def test_a_bomb_of_bzip2_costs_neither_memory_nor_time(tmp_path: Path) -> None:
    """It claims little, so that only the method tells: a piece of bzip2 unpacks to all that it holds."""
    path, said = tmp_path / "x.npz", bytes(100 * 2**20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("x.npy", npy(np.zeros(2**20, np.uint8)) + said)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 24 : at + 28] = (128 + 2**20).to_bytes(4, "little")
    path.write_bytes(data)
    ended = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True)
    sentence, figures = ended.stdout.splitlines()
    assert "packed with bzip2" in sentence
    assert int(figures.split()[0]) < 20, "MB"
    assert int(figures.split()[1]) < 5, "seconds"


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.npy", npy(np.zeros(2000)))
        first = packed.infolist()[0]
        for name in "bcd":
            again = zipfile.ZipInfo(f"{name}.npy")
            for part in ("header_offset", "file_size", "compress_size", "CRC", "orig_filename", "external_attr"):
                setattr(again, part, getattr(first, part))
            packed.filelist.append(again)
    with pytest.raises(aclnn.AclnnError, match="its members overlap"):
        containers.read(path)


@pytest.mark.torch
def test_a_pt_tensor_that_shows_one_element_as_many(tmp_path: Path) -> None:
    import torch

    torch.save(torch.zeros(1).expand(2**33), tmp_path / "x.pt")
    with pytest.raises(aclnn.AclnnError, match="x shows 8589934592 elements, but only"):
        containers.read(tmp_path / "x.pt")
    torch.save({"x": torch.ones(1).expand(4, 5)}, tmp_path / "y.pt")
    assert containers.read(tmp_path / "y.pt").arrays["x"].sum() == 20


def test_a_broadcast_gradient_is_measured_by_the_tensors_beside_it(tmp_path: Path) -> None:
    n = 2 * untrusted.FREE_TO_SHOW
    layout = {"shape": [n], "strides": [0], "offset": 0}
    case = json.dumps({"operator": "aclnnEluBackward", "attributes": ELU, "tensors": {"gradOutput": layout}})
    one, x = np.ones(1, np.float32), np.ones(n, np.float32)
    whole = containers.Contents({"gradOutput": one, "selfOrResult": x, "gradInput": x}, case)
    containers.write(tmp_path / "fine.npz", whole)
    assert compare(tmp_path / "fine.npz").sound
    containers.write(tmp_path / "bomb.npz", containers.Contents({"gradOutput": one, "selfOrResult": one}, case))
    with pytest.raises(aclnn.AclnnError, match="shows 2097152 elements, but only 2 are stored"):
        compare(tmp_path / "bomb.npz")


def test_the_same_file_twice_is_compared_once(tmp_path: Path) -> None:
    planted("aclnnEluBackward").save(tmp_path / "c.npz")
    (tmp_path / "a.npz").symlink_to("c.npz")
    os.link(tmp_path / "c.npz", tmp_path / "d.npz")
    assert len(compare(tmp_path).compared) == 1


def test_names_that_are_said_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as packed:
        for name in ("__case__", "__case__.npy"):
            packed.writestr(name, npy(np.array("{}")))
    with pytest.raises(aclnn.AclnnError, match="it has two arrays named __case__"):
        containers.read(tmp_path / "x.npz")
    entry = '"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}'
    header = f"{{{entry}, {entry}}}".encode()
    (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(aclnn.AclnnError, match="it says 'x' twice"):
        containers.read(tmp_path / "x.safetensors")
    header = f"{{{entry}, {entry.replace('x', 'y')}}}".encode()
    (tmp_path / "y.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(aclnn.AclnnError, match="its tensors overlap"):
        containers.read(tmp_path / "y.safetensors")


def test_a_folder_of_cases_needs_a_folder_of_goldens(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    run.save(tmp_path / "c.npz")
    for golden in (np.ones(3, np.float32), {"gradInput": np.ones(3, np.float32)}):
        with pytest.raises(aclnn.AclnnError, match="is a folder of cases; its golden must be a folder too"):
            compare(tmp_path, golden)


def test_what_a_parser_says_names_no_objects_of_its_own(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2 + 3,), }".ljust(117) + b"\n"
    damaged = tmp_path / "x.npy"
    damaged.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(20))
    with pytest.raises(aclnn.AclnnError) as raised:
        containers.read(damaged)
    assert "damaged" in raised.value.message
    assert " at 0x" not in raised.value.message
