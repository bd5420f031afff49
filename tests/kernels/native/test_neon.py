"""What ARM would run, looked at from any machine: kernels are compiled for it, and the innermost loops are read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("numba")

# numba and our own target machine ask these for the machine they compile for.
CROSS = """
import platform, sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
triple, features = "aarch64-unknown-linux-gnu", llvm.FeatureMap(dict.fromkeys(("neon", "fp-armv8"), True))
platform.machine = lambda: "aarch64"
llvm.get_process_triple = lambda: triple
llvm.get_host_cpu_name, llvm.get_host_cpu_features = lambda: "neoverse-n1", lambda: features
llvm.Target.from_default_triple = classmethod(lambda kind: kind.from_triple(triple))
from aclnn.kernels.native import jit
jit._machine_code = lambda text, *_: jit._machine().emit_assembly(jit._llvm().parse_assembly(text))
print(jit._compile(*sys.argv[1:]))
"""

COUNTING = {"adds", "subs", "b.ne", "b.lo"}  # how a loop ends


def assembly(name: str, types: str, tmp_path: Path) -> list[str]:
    """The lines of a kernel's assembly."""
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path)}
    environment.pop("ACLNN_MAX_ISA", None)
    command = [sys.executable, "-c", CROSS, name, types]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return [line for line in ended.stdout.splitlines() if not line.startswith("\t.")]


def innermost_loops(lines: list[str]) -> list[list[str]]:
    """What lies between a label and the last jump back to it, where no other such loop lies inside."""
    labels = {line.partition(":")[0]: i for i, line in enumerate(lines) if line.startswith(".L")}
    loops = {}
    for i, line in enumerate(lines):
        target = line.split()[-1] if re.match(r"\t(b|b\.\w+|cbn?z|tbn?z)\t", line) else ""
        if labels.get(target, i) < i:
            loops[labels[target]] = i
    inner = [(a, b) for a, b in loops.items() if not any(a < c < b for c in loops)]
    return [[line.strip() for line in lines[a + 1 : b + 1]] for a, b in inner]


def counted(loop: list[str]) -> Counter[str]:
    return Counter(line.split()[0] for line in loop)


def test_loops_are_found() -> None:
    lines = ["f:", ".L1:", "\tadd\tx0", ".L2:", "\tfmla\tv0.4s", "\tb.ne\t.L2", "\tcbz\tx1, .L3", "\tb\t.L1", ".L3:"]
    assert innermost_loops(lines) == [["fmla\tv0.4s", "b.ne\t.L2"]]


def test_sums_of_a_tile_stay_in_the_registers_of_neon(tmp_path: Path) -> None:
    """Products for each of six rows of four vectors, or fewer: no sum is written down or read, nothing is called."""
    loops = innermost_loops(assembly("convolve.data", "iiFFFIIIII", tmp_path))
    tiles = {}
    for loop in loops:
        products = [line for line in loop if line.startswith("fmla")]
        sums = len({line.split()[1] for line in products})
        if len(products) > sums >= 6 and not any(line.startswith(".L") for line in loop):  # several terms at once
            tiles[sums] = len(products) // sums
            assert all(re.fullmatch(r"fmla\tv\d+\.4s, v\d+\.4s, v\d+\.s\[\d\]", line) for line in products)
            others = counted(loop) - Counter(fmla=len(products))
            assert set(others) <= {"ldr", "ldp", "add", *COUNTING}  # no call, no store, no copy between registers
            assert sums < 24 or others.total() <= len(products) // 2
    assert tiles == {24: 2, 18: 2, 12: 8, 6: 8}


def test_loops_over_elements_are_vectors_of_neon_without_calls(tmp_path: Path) -> None:
    loops = innermost_loops(assembly("elu.backward", "FFFfffi", tmp_path))
    wide = [loop for loop in loops if any(re.match(r"fmla\tv\d+\.4s", line) for line in loop)]
    assert wide
    assert not any({"bl", "blr"} & set(counted(loop)) for loop in wide)
