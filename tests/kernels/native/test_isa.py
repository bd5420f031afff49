"""ACLNN_MAX_ISA: it holds for compiled code and for oneDNN, it is part of the cache's key, and results stay right."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn import AclnnError
from aclnn.kernels.native import isa
from tests.kernels.test_fallbacks import kernels

ROOT = Path(__file__).parents[3]
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels of x86-64")
ZEN4 = dict.fromkeys(("64bit", "cmov", "sse", "sse2", "sse4.1", "avx", "avx2", "fma", "vaes", "avx512f"), True)


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch):
    """A function that sets the variable as a new process would find it."""

    def limit(name: str, machine: str = "x86_64") -> None:
        monkeypatch.setenv("ACLNN_MAX_ISA", name)
        monkeypatch.setattr(platform, "machine", lambda: machine)
        isa.limit.cache_clear()

    yield limit
    monkeypatch.undo()
    isa.limit.cache_clear()


@pytest.mark.parametrize(
    ("name", "machine", "choices"),
    [
        ("avx3", "x86_64", "sse41, avx2, avx512, native"),
        ("neon", "x86_64", "sse41, avx2, avx512, native"),
        ("avx2", "aarch64", "neon, native"),
        ("avx2", "riscv64", "native"),
    ],
)
def test_what_the_processor_does_not_know_is_an_error(limited, name: str, machine: str, choices: str) -> None:
    limited(name, machine)
    with pytest.raises(AclnnError) as raised:
        isa.limit()
    assert raised.value.message == f"ACLNN_MAX_ISA is {name!r}; on this processor choose one of {choices}."


@pytest.mark.parametrize("name", ["", "native", " Native ", "AVX512"])
def test_without_a_lower_limit_the_processor_is_used_as_it_is(limited, name: str) -> None:
    limited(name)
    assert isa.target("znver4", ZEN4)[0] == "znver4"
    assert "-" not in isa.target("znver4", ZEN4)[1]


def test_a_lower_limit_takes_away_what_is_beyond(limited) -> None:
    limited("avx2")
    processor, features = isa.target("znver4", {**ZEN4, "amx-tile": False})
    assert processor == "haswell"
    assert {"-avx512f", "-vaes", "-amx-tile", "+avx2", "+fma"} <= set(features.split(","))
    limited("sse41")
    processor, features = isa.target("znver4", ZEN4)
    assert processor == "penryn"
    assert {f for f in features.split(",") if f[0] == "+"} == {"+64bit", "+cmov", "+sse", "+sse2", "+sse4.1"}


WHAT_IS_MADE = """
import sys
from aclnn.kernels.native import jit
from aclnn.kernels.onednn import library as onednn
with open(sys.argv[1], "wb") as file:
    file.write(jit._compile("elu.backward", "FFFfffi"))
print(hex(onednn.library().functions.dnnl_get_effective_cpu_isa()), jit._fingerprint())
"""


def made_with(level: str, into: Path) -> tuple[str, str, str]:
    """oneDNN's number of the level, the name of the cache, and the code, of a process with this limit."""
    command = [sys.executable, "-c", WHAT_IS_MADE, str(into)]
    ended = subprocess.run(command, env={**os.environ, "ACLNN_MAX_ISA": level}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    number, key = ended.stdout.split()
    return number, key, subprocess.run(["objdump", "-d", into], capture_output=True, text=True, check=True).stdout


@on_x86
def test_compiled_code_and_onednn_keep_within_the_limit(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    if shutil.which("objdump") is None:
        pytest.skip("there is no objdump")
    number, key, code = made_with("sse41", tmp_path / "code.o")
    assert number == "0x1"
    assert not re.search(r"%[yz]mm", code)
    names = subprocess.run(["objdump", "-t", tmp_path / "code.o"], capture_output=True, text=True, check=True).stdout
    assert "fma" not in names  # without the instruction, no function of the C library is called for every element
    number, other_key, code = made_with("avx2", tmp_path / "code.o")
    assert number == "0x7"
    assert re.search("%ymm", code)
    assert not re.search("%zmm", code)
    assert key != other_key


@on_x86
@pytest.mark.parametrize(
    ("features", "lanes", "across"),
    [("+avx512f,+avx2,+fma", 16, 4), ("+avx2,-avx512f,+fma", 8, 2), ("+avx2,-fma", 4, 2), ("+sse4.1,-avx2", 4, 2)],
)
def test_tiles_are_as_wide_as_the_vectors(features: str, lanes: int, across: int) -> None:
    assert isa.vectors(features)[:2] == (lanes, across)
    assert not isa.vectors(features).pairs


@on_x86
def test_pairs_are_multiplied_where_there_is_an_instruction() -> None:
    assert isa.vectors("+avx512f,+avx512bf16") == (16, 4, True, True)
    assert not isa.vectors("+avx2,+fma,+avx512bf16").pairs


@pytest.mark.parametrize("machine", ["aarch64", "arm64", "ARM64"])  # as Linux, macOS and Windows say
def test_tiles_on_arm(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert isa.vectors("+fp-armv8,+neon") == (4, 4, True, False)


LOST = """
import numba
numba.njit("float32(float32)")(lambda x: x + 1)
import numpy as np, aclnn
x = np.ones(5000, np.float32)
print(aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, False, x).refused)
"""


@on_x86
def test_a_numba_that_is_already_at_work_is_not_mixed_in(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    environment = {**os.environ, "ACLNN_MAX_ISA": "sse41", "ACLNN_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", LOST], env=environment, capture_output=True, text=True)
    assert "before ACLNN_MAX_ISA could limit it" in ended.stdout, ended.stderr


CORE = (
    *("elu/test_fast", "convolution/test_forward", "conv_tbc/test_fast"),
    *("lstm/test_fast", "lstm/test_forward", "lstm_cell/test_fast"),
)
LEVELS = ["sse41", "avx2", "avx512", "native"]


@on_x86
@pytest.mark.long
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_right(level: str) -> None:
    """With oneDNN asked first; tiles have a test like it."""
    assert {"numba", "tiles", "direct"} <= kernels((), True, ACLNN_MAX_ISA=level)


@on_x86
@pytest.mark.long  # tests/every/test_isa.py asks every operator quickly
def test_the_core_is_right_with_avx2_where_there_is_more() -> None:
    from aclnn.kernels.native import jit

    if os.environ.get("ACLNN_MAX_ISA") or "+avx512f" not in jit._host()[1]:
        pytest.skip("the other tests run with no more than AVX2")
    core = ["tests/test_tiny.py", *(f"tests/kernels/{name}.py" for name in CORE)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long and not torch", *core]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "ACLNN_MAX_ISA": "avx2"}, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
