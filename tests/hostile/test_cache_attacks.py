"""An attacker at the cache of machine code: links, modes, owners, and folders that change places while a victim starts.

Nothing that he wrote is ever read. What is put into his folders carries a right digest: it has no secret.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from aclnn.base.folder import PrivateFolder
from aclnn.kernels.native import jit
from aclnn.kernels.native.code_cache import CodeCache, digest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs owners and modes")

KEY = "elu.backward-FFFfffi"
OURS, FOREIGN = b"ours", b"foreign"
VICTIM, STRANGER = (12345, 23456) if os.geteuid() == 0 else (os.geteuid(), None)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")


@pytest.fixture
def leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of machine code below a parent that everybody can write to, with our code in it."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "open" / "cache"))
    write(OURS)
    assert read() == OURS
    return tmp_path / "open" / "cache" / jit._fingerprint()


def cache() -> CodeCache:
    return CodeCache(jit._fingerprint())


def write(code: bytes) -> None:
    cache().write(KEY, code)


def read() -> bytes | None:
    return cache().read(KEY)


def plant(file: Path, code: bytes = FOREIGN) -> None:
    file.write_bytes(digest(jit._fingerprint(), KEY, code) + code)
    file.chmod(0o644)


def a_folder_others_can_write_to(leaf: Path) -> None:
    plant(leaf / KEY)
    leaf.chmod(0o707)


def a_folder_the_group_can_write_to(leaf: Path) -> None:
    plant(leaf / KEY)
    leaf.chmod(0o770)


def a_link_to_a_folder(leaf: Path) -> None:
    elsewhere = leaf.with_name("elsewhere")
    leaf.rename(elsewhere)
    plant(elsewhere / KEY)
    leaf.symlink_to(elsewhere)


def a_link_to_a_file(leaf: Path) -> None:
    plant(leaf / "elsewhere")
    (leaf / KEY).unlink()
    (leaf / KEY).symlink_to("elsewhere")


def a_hard_link(leaf: Path) -> None:
    plant(leaf.parent / "elsewhere")
    (leaf / KEY).unlink()
    (leaf / KEY).hardlink_to(leaf.parent / "elsewhere")


def a_file_others_can_write_to(leaf: Path) -> None:
    plant(leaf / KEY)
    (leaf / KEY).chmod(0o646)


def a_file_the_group_can_write_to(leaf: Path) -> None:
    plant(leaf / KEY)
    (leaf / KEY).chmod(0o664)


def a_pipe(leaf: Path) -> None:
    (leaf / KEY).unlink()
    os.mkfifo(leaf / KEY, 0o600)


PLANTED = (
    *(a_folder_others_can_write_to, a_folder_the_group_can_write_to, a_link_to_a_folder, a_link_to_a_file),
    *(a_hard_link, a_file_others_can_write_to, a_file_the_group_can_write_to, a_pipe),
)


@pytest.mark.parametrize("attack", PLANTED, ids=lambda attack: attack.__name__)
def test_what_was_planted_is_not_read(leaf: Path, attack: Callable[[Path], None]) -> None:
    plant(leaf / KEY)
    assert read() == FOREIGN  # what is planted would be taken, if it were ours
    attack(leaf)
    assert read() is None


@pytest.mark.parametrize("attack", PLANTED[3:], ids=lambda attack: attack.__name__)
def test_a_planted_file_is_replaced_and_what_it_led_to_is_not_touched(
    leaf: Path, attack: Callable[[Path], None]
) -> None:
    attack(leaf)
    write(OURS)
    assert read() == OURS
    for elsewhere in leaf.parent.rglob("elsewhere"):
        assert elsewhere.read_bytes().endswith(FOREIGN)


@as_root
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_belongs_to_someone_else_is_not_read(leaf: Path, what: str) -> None:
    plant(leaf / KEY)
    os.chown(leaf if what == "folder" else leaf / KEY, 12345, 12345)
    assert read() is None


@pytest.mark.parametrize("attack", PLANTED[:3], ids=lambda attack: attack.__name__)
def test_a_folder_that_is_not_ours_is_refused_with_the_reason(leaf: Path, attack: Callable[[Path], None]) -> None:
    attack(leaf)
    with pytest.raises(OSError, match="only its user can write to") as refused:
        PrivateFolder(leaf.name)
    assert refused.value.errno is None
    assert str(leaf) in str(refused.value)


@contextmanager
def open_house() -> Iterator[Path]:
    """A folder that every user can reach and write to; pytest's own are for its user alone."""
    made = Path(tempfile.mkdtemp(prefix="aclnn-test-"))
    try:
        made.chmod(0o777)
        yield made
    finally:
        shutil.rmtree(made)


@as_root
@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=oct)
def test_below_folders_of_others_a_cache_works(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in /tmp, and as where somebody was careless."""
    with open_house() as house:
        house.chmod(mode)
        os.chown(house, STRANGER, STRANGER)
        monkeypatch.setenv("ACLNN_CACHE_DIR", str(house / "cache"))
        write(OURS)
        assert read() == OURS


VICTIM_PROGRAM = f"""
import os, sys, time
from aclnn.kernels.native import jit
jit._fingerprint()
if os.geteuid() == 0:
    os.setuid({VICTIM})
seen, end = {{}}, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    code = jit.CodeCache(jit._fingerprint()).read({KEY!r})
    seen[code] = seen.get(code, 0) + 1
print(seen)
"""

ATTACKER_PROGRAM = """
import ctypes, os, sys
if os.geteuid() == 0:
    os.setuid(int(sys.argv[1]))
exchange, one, other = ctypes.CDLL(None).renameat2, *map(os.fsencode, sys.argv[2:])
assert exchange(-100, one, -100, other, 2) == 0
parent = os.getppid()
while os.getppid() == parent:  # whoever is killed leaves no attacker behind
    exchange(-100, one, -100, other, 2)
"""


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """Another process has two folders change places, again and again."""
    command = [sys.executable, "-c", ATTACKER_PROGRAM, str(STRANGER), str(one), str(other)]
    attacker = subprocess.Popen(command)
    try:
        time.sleep(0.2)
        assert attacker.poll() is None
        yield
    finally:
        attacker.kill()
        attacker.wait()


needs_exchange = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "renameat2"), reason="needs renameat2")


@pytest.fixture(params=["parents", "folders"])
def rivals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """The victim's cache and the attacker's, where the attacker may rename: whole caches, or folders in one cache."""
    name = jit._fingerprint()
    with open_house() as house:
        other = house / "foreign" / name if request.param == "parents" else house / "cache" / "foreign"
        for leaf, code, mode, owner in (
            (house / "cache" / name, OURS, 0o700, VICTIM),
            (other, FOREIGN, 0o777, STRANGER),
        ):
            leaf.mkdir(parents=True)
            leaf.parent.chmod(0o777)
            plant(leaf / KEY, code)
            leaf.chmod(mode)
            for made in (leaf, leaf / KEY):
                if owner is not None:
                    os.chown(made, owner, owner)
        monkeypatch.setenv("ACLNN_CACHE_DIR", str(house / "cache"))
        yield (house / "cache", house / "foreign") if request.param == "parents" else (house / "cache" / name, other)


@needs_exchange
def test_folders_that_change_places_gain_nothing(rivals: tuple[Path, Path]) -> None:
    with exchanging(*rivals):
        ended = subprocess.run([sys.executable, "-c", VICTIM_PROGRAM, "1"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert repr(OURS) in ended.stdout
    assert "None" in ended.stdout  # he was there
    assert repr(FOREIGN) not in ended.stdout, ended.stdout


START = """
import numpy as np, aclnn
x = np.linspace(-3, 3, 5000).astype(np.float32)
aclnn.elu_backward(np.cos(x), 1.5, 1.0, 1.0, False, x, engine="fast")
"""


@pytest.mark.long
@needs_exchange
def test_no_start_runs_foreign_code(rivals: tuple[Path, Path]) -> None:
    """Whole processes: foreign code cannot be linked, so whoever read it would fail."""

    def start() -> None:
        ended = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stderr

    house = rivals[1].parent if rivals[1].parent.name != "cache" else rivals[1].parent.parent
    for path in house.rglob("*"):
        os.chown(path, os.geteuid(), os.getegid())
    (house / "cache" / jit._fingerprint() / KEY).unlink()
    start()
    with exchanging(*rivals):
        for _ in range(20):
            start()
