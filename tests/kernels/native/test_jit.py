"""The folder of machine code: found again, never trusted blindly, never needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

import aclnn
from aclnn.base.run_once import Once
from aclnn.contract.cases import Case
from aclnn.kernels.native import code_cache, entry, jit
from aclnn.kernels.native.memory import address
from aclnn.kernels.native.threads import Work
from aclnn.runtime.plan import make_plan
from tests.kernels.cases import LARGE
from tests.kernels.test_memory import FORWARD

NAME, TYPES = "elu.backward", "FFFfffi"
PROGRAM = """
import sys, numpy as np, aclnn
x = np.linspace(-3, 3, 5000).astype(np.float32)
out = aclnn.elu_backward(np.cos(x), 1.5, 1.0, 1.0, False, x, engine={engine!r})
print(out.tobytes().hex()[:4000], "numba" in sys.modules)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cold cache of its own."""
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_LOADED", Once())
    jit._fingerprint.cache_clear()
    yield tmp_path / "cache" / jit._fingerprint()
    jit._fingerprint.cache_clear()


def works() -> None:
    """The kernel can be loaded and computes."""
    jit._LOADED.clear()
    x = np.array([-1.0, 2.0], np.float32)
    out = np.zeros(2, np.float32)
    arguments = [address(x), address(x), address(out), 1.0, 1.0, 1.0, 1]
    Work(jit.load(NAME, TYPES), 2, 1024, arguments, 1).run()
    assert out.tolist() == [0.0, 2.0]


def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is compiled from now on."""
    compiled: list[str] = []
    real = jit._compile

    def counting(name: str, types: str) -> bytes:
        compiled.append(name)
        return real(name, types)

    monkeypatch.setattr(jit, "_compile", counting)
    return compiled


def run(engine: str = "fast", **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", PROGRAM.format(engine=engine)]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


SMALL = """
import sys, numpy as np, aclnn
one, four = np.ones((1, 1), np.float32), np.ones((1, 4), np.float32)
plans = [
    aclnn.elu.plan(one),
    aclnn.elu_backward.plan(one, 1.0, 1.0, 1.0, False, np.broadcast_to(one, (1, 1))),
    aclnn.thnn_fused_lstm_cell.plan(four, four, one),
    aclnn.thnn_fused_lstm_cell_backward.plan(one, one, one, one, four, True),
]
for plan in plans:
    plan.run()
print({plan.kernel for plan in plans} == {"numba"}, "numba" in sys.modules)
"""


def test_small_calls_of_a_warm_process_are_compiled_ones_without_numba(tmp_path: Path) -> None:
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path)}
    said = [subprocess.check_output([sys.executable, "-c", SMALL], text=True, env=environment) for _ in range(2)]
    assert [line.split() for line in said] == [["True", "True"], ["True", "False"]]


def test_a_warm_process_computes_the_same_bits_without_numba(tmp_path: Path) -> None:
    cold = run(ACLNN_CACHE_DIR=str(tmp_path)).split()
    warm = run(ACLNN_CACHE_DIR=str(tmp_path)).split()
    assert (cold[1], warm[1]) == ("True", "False")
    assert cold[0] == warm[0]


def test_what_is_in_the_folder_is_not_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiles(monkeypatch)
    works()
    works()
    assert compiled == [NAME]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in folder.iterdir()] == [f"{NAME}-{TYPES}"]


@pytest.mark.parametrize("damage", ["empty", "truncated", "one bit", "longer", "of another kernel", "a folder"])
def test_a_damaged_file_counts_as_absent(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    works()
    file = folder / f"{NAME}-{TYPES}"
    raw = bytearray(file.read_bytes())
    if damage == "one bit":
        raw[len(raw) // 2] ^= 4
    if damage == "of another kernel":
        jit.load("elu.backward", "HHHfffi")
        raw = bytearray((folder / "elu.backward-HHHfffi").read_bytes())
    damaged = {"empty": b"", "truncated": raw[:-100], "longer": bytes(raw) + b"x"}.get(damage, raw)
    file.unlink()
    if damage == "a folder":
        file.mkdir()
    else:
        file.write_bytes(damaged)
    compiled = compiles(monkeypatch)
    works()
    assert compiled == [NAME]


def test_a_changed_helper_means_another_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "kernels"
    shutil.copytree(code_cache._HERE, copy)
    monkeypatch.setattr(code_cache, "_HERE", copy)
    jit._fingerprint.cache_clear()
    assert jit._fingerprint() == folder.name
    with (copy / "source" / "arithmetic.py").open("a") as helper:
        helper.write("# changed\n")
    jit._fingerprint.cache_clear()
    assert jit._fingerprint() != folder.name


@pytest.mark.parametrize("obstacle", ["a file", "read-only", "world-writable", "a link"])
def test_without_a_folder_of_our_own_kernels_are_compiled_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    if obstacle == "a file":
        folder.parent.write_text("")
    elif obstacle == "read-only":
        monkeypatch.setattr(Path, "mkdir", _read_only)
    elif obstacle == "world-writable":
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    else:
        (folder.parent / "elsewhere").mkdir(parents=True)
        folder.symlink_to(folder.parent / "elsewhere")
    compiled = compiles(monkeypatch)
    works()
    works()
    assert compiled == [NAME, NAME]


def _read_only(*args: object, **more: object) -> None:
    raise PermissionError("read-only file system")


def test_a_folder_that_turns_read_only_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", _read_only)
    works()
    assert list(folder.iterdir()) == []


def test_without_a_home_nothing_breaks() -> None:
    assert run(HOME="/proc/nowhere", XDG_CACHE_HOME="", ACLNN_CACHE_DIR="")


def test_numba_switched_off_is_a_refusal(tmp_path: Path) -> None:
    assert run("auto", NUMBA_DISABLE_JIT="1", ACLNN_CACHE_DIR=str(tmp_path))


def test_without_numba_the_numpy_kernel_serves() -> None:
    program = "import sys; sys.modules['llvmlite'] = None\n" + PROGRAM.format(engine="auto")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("False\n")


@pytest.mark.parametrize("module", ["llvmlite", "numba"])
@pytest.mark.parametrize("error", ["OSError('wrong ELF class')", "RuntimeError('broken')", "ImportError('no')"])
def test_a_compiler_that_cannot_be_loaded_is_a_refusal(module: str, error: str, tmp_path: Path) -> None:
    finder = f"""
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise {error}
sys.meta_path.insert(0, Broken())
"""
    command = [sys.executable, "-c", finder + PROGRAM.format(engine="auto")]
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("False\n")


FORK_WHILE_COMPILING = """
import os, threading, time
from aclnn.kernels.native import jit
begun, real = threading.Event(), jit._compile
def slow(name, types):
    begun.set()
    return real(name, types)
jit._compile = slow
thread = threading.Thread(target=jit.load, args=("elu.backward", "FFFfffi"))
thread.start()
begun.wait()
time.sleep({pause})
child = os.fork()
if child == 0:
    jit.load("elu.backward", "FFFfffi"), jit.load("elu.forward", "FFfff")
    os._exit(7)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("pause", [0, 0.2])
def test_a_child_of_a_process_that_compiles_can_compile(pause: float, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK_WHILE_COMPILING.format(pause=pause)]
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert ended.stdout == "7\n", ended.stderr


def test_one_kernel_is_loaded_while_another_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works()  # it is in the folder now
    jit._LOADED.clear()
    may_end, real = threading.Event(), jit._compile

    def waiting(name: str, types: str) -> bytes:
        assert may_end.wait(60)
        return real(name, types)

    monkeypatch.setattr(jit, "_compile", waiting)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(jit.load, "elu.forward", "FFfff")
        quick = pool.submit(jit.load, NAME, TYPES)
        assert quick.result(30).address
        assert not slow.done()
        may_end.set()
        assert slow.result(60).address


def test_an_unknown_symbol_is_an_exception_and_not_an_abort() -> None:
    llvm = jit._llvm()
    text = "declare void @nowhere_to_be_found()\n"
    for name in (entry.ENTRY, entry.FUNCTION):
        text += f"define void @{name}(ptr %b) {{\n  call void @nowhere_to_be_found()\n  ret void\n}}\n"
    module = llvm.parse_assembly(text)
    with pytest.raises(jit.NoNativeCodeError, match="cannot be loaded"):
        jit._addresses(jit._machine().emit_object(module))


def test_many_threads_load_one_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiles(monkeypatch)
    found: list[int] = []
    workers = [threading.Thread(target=lambda: found.append(jit.load(NAME, TYPES).address)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(found)) == 1
    assert len(found) == 8
    assert compiled == [NAME]


@pytest.mark.parametrize(
    ("name", "types"), [(NAME, TYPES), ("elu.forward", "FFfff"), ("lstm_cell.backward", "FFFFFFFFIiiiiiFi")]
)
def test_loops_are_as_wide_as_the_processor(name: str, types: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, vectors = compiled_text(name, types, monkeypatch), jit.vectors()
    if not vectors.fused:
        pytest.skip("sums of products are made in float64 here, and loops as wide as that")
    assert f"<{vectors.lanes} x float>" in text


@pytest.mark.skipif(not jit.vectors().pairs, reason="the processor has no AVX512-BF16, or may not use it")
@pytest.mark.parametrize("name", ["convolve.data", "convolve_few.data"])
def test_bfloat16_is_multiplied_in_pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, floats = (compiled_text(name, f"ii{letter}FFIIIII", monkeypatch) for letter in "PF")
    assert "dpbf16ps.512" in pairs
    assert "dpbf16ps" not in floats
    assert len(re.findall("call.*llvm.fma.v16f32", pairs)) < len(re.findall("call.*llvm.fma.v16f32", floats))


@pytest.mark.parametrize("letter", jit.POINTER.values())
def test_every_kind_of_elu_has_a_loop_of_its_own(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """bfloat16 once had one loop that computed all three kinds for every element: four times too slow of results."""
    text = compiled_text("elu.backward", 3 * letter + "fffi", monkeypatch)
    assert len(re.findall(r"^vector\.body[.\w]*:", text, re.MULTILINE)) >= 3


def compiled_text(name: str, types: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel in LLVM's language, after all its passes."""
    seen: list[str] = []
    make = jit._machine_code
    monkeypatch.setattr(jit, "_machine_code", lambda text, *more: seen.append(text) or make(text, *more))
    jit._compile(name, types)
    return seen[0]


@pytest.mark.parametrize("case", [*LARGE, *FORWARD], ids=lambda case: case.op.python)
def test_phase_2_needs_no_code_that_phase_1_did_not_load(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first run would compile, and one that cannot would fail where another kernel could serve."""
    aclnn.cache_clear()
    loaded: list[tuple[str, str]] = []
    load = jit.load

    def noted(name: str, kinds: str) -> entry.Entry:
        loaded.append((name, kinds))
        return load(name, kinds)

    monkeypatch.setattr(jit, "load", noted)
    plan = make_plan(case.op, case.call, "fast", 2)
    in_phase_1 = set(loaded)
    loaded.clear()
    plan.instantiate()
    assert set(loaded) <= in_phase_1
