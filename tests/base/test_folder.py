"""The private folder: whole files or none, for its owner alone, and nothing left behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aclnn.base import folder
from aclnn.base.folder import PrivateFolder


@pytest.fixture(autouse=True, params=["descriptors", "names"])
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; once more as on a system that cannot open folders."""
    monkeypatch.setattr(folder, "_HAS_DESCRIPTORS", request.param == "descriptors" and folder._HAS_DESCRIPTORS)
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "one" / "two"))
    return tmp_path / "one" / "two"


def names(cache: Path) -> list[str]:
    return sorted(p.name for p in (cache / "kernels").iterdir())


def test_what_is_written_is_read(cache: Path) -> None:
    kept = PrivateFolder("kernels")
    kept.write("a", b"\r\n\x1a first")
    kept.write("a", b"\r\n\x1a second")
    assert kept.read("a") == b"\r\n\x1a second"
    assert kept.path == cache / "kernels"
    assert names(cache) == ["a"]
    with pytest.raises(FileNotFoundError):
        kept.read("b")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open descriptors")
def test_descriptors_are_given_back() -> None:
    kept = PrivateFolder("kernels")
    kept.write("a", b"x")
    (kept.path / "folder").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        kept.read("a")
        kept.write("a", b"x")
        with pytest.raises(FileNotFoundError):
            kept.read("missing")
        with pytest.raises(OSError, match="not a file"):
            kept.read("folder")
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_written_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = PrivateFolder("kernels")
    kept.write("a", b"before")

    def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kept.write("a", b"after")
    assert names(cache) == ["a"]
    assert kept.read("a") == b"before"


def test_a_folder_that_vanished_is_made_again(cache: Path) -> None:
    kept = PrivateFolder("kernels")
    kept.path.rmdir()
    kept.write("a", b"x")
    assert kept.read("a") == b"x"


def test_a_link_to_nowhere_above_is_an_error(cache: Path) -> None:
    cache.parent.symlink_to("/nowhere/at/all")
    with pytest.raises(FileExistsError):
        PrivateFolder("kernels")


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077], ids=oct)
def test_folders_are_made_for_their_owner_alone(cache: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        PrivateFolder("kernels").write("a", b"x")
    finally:
        os.umask(before)
    for made in (cache.parent, cache, cache / "kernels"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700, made
    assert stat.S_IMODE((cache / "kernels" / "a").stat().st_mode) == 0o600


KILLED = """
import os, signal
from aclnn.base.folder import PrivateFolder
os.replace = lambda *given, **more: os.kill(os.getpid(), signal.SIGKILL)
PrivateFolder("kernels").write("a", b"x" * 100)
"""


def test_what_killed_writers_left_is_swept(cache: Path) -> None:
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", KILLED], env=os.environ)
        assert ended.returncode == -signal.SIGKILL
    kept = PrivateFolder("kernels")
    old, young = names(cache)
    an_hour_ago = time.time() - 3601
    os.utime(kept.path / old, (an_hour_ago, an_hour_ago))
    (kept.path / "not a piece").touch()
    os.utime(kept.path / "not a piece", (an_hour_ago, an_hour_ago))
    kept.write("b", b"x")
    assert names(cache) == sorted(["b", "not a piece", young])  # the writer of the young one may still be at it


def test_a_cache_that_cannot_be_written_is_said_once_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(folder, "_refusals", [])
    for _ in range(3):
        with pytest.raises(OSError, match="file"):
            folder.PrivateFolder("here")
    (said,) = caplog.messages
    assert said.startswith("the cache cannot be written")
    assert "ACLNN_CACHE_DIR" in said
