"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import aclnn
from aclnn.base.files import whole_file


def write(path: Path, content: bytes = b"after") -> None:
    with whole_file(path) as file:
        file.write(content)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "x.npz"
    target.write_text("before")

    def fail_half_way() -> None:
        with whole_file(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["x.npz"]
    write(target)
    assert target.read_text() == "after"
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077], ids=oct)
def test_its_mode_is_that_of_any_file(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "ours")
        (tmp_path / "plain").touch()
    finally:
        os.umask(before)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_links_are_never_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one at the target, nor one at the piece: not even when its name is known beforehand."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "r.csv").symlink_to(precious)
    write(tmp_path / "r.csv")
    assert not (tmp_path / "r.csv").is_symlink()
    for guess in (f".r.csv.{os.getpid()}.part", f".aclnn-{bytes(8).hex()}.part"):
        (tmp_path / guess).symlink_to(precious)
    write(tmp_path / "r.csv")
    monkeypatch.setattr(os, "urandom", bytes)
    with pytest.raises(aclnn.AclnnError, match=r"r\.csv cannot be written: file exists"):
        write(tmp_path / "r.csv")
    assert precious.read_text() == "precious"


def test_a_piece_that_becomes_a_link_while_it_is_written_is_not_followed(tmp_path: Path) -> None:
    """In a folder that others can write to."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    with whole_file(tmp_path / "r.csv") as file:
        (part,) = tmp_path.glob(".*.part")
        part.unlink()
        part.symlink_to(precious)
        file.write(b"ours")
    assert precious.read_text() == "precious"


def test_two_threads_of_one_process_do_not_share_a_piece(tmp_path: Path) -> None:
    with whole_file(tmp_path / "x") as first:
        write(tmp_path / "x", b"second")
        first.write(b"first")
    assert (tmp_path / "x").read_bytes() == b"first"


def test_a_name_as_long_as_the_system_takes(tmp_path: Path) -> None:
    name = "x" * os.pathconf(tmp_path, "PC_NAME_MAX")
    write(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("place", ["missing/x", "file/x", "folder"])
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(aclnn.AclnnError, match=r"cannot be written: .*(directory|folder)"):
        write(tmp_path / place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
