"""Functions of others, compiled by numba beside ours, have machine code as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

PROGRAM = """
import threading
import numba, numpy as np, aclnn

def compiled():
    @numba.njit
    def clipped(x, most):
        total = 0.0
        for i in range(len(x)):
            total += min(x[i], most) + max(0.0, np.exp(x[i])) + divmod(i, 2)[1]
        return total
    return clipped(np.zeros(4), 1.0)

def ours():
    x = np.linspace(-3, 3, 50).astype(np.float32)
    return aclnn.elu(x, engine="fast").tobytes() == aclnn.elu(x, engine="fast").tobytes()

found = [compiled()] if {first} else []
threads = [threading.Thread(target=lambda f=f: found.append(f())) for f in (compiled, ours, compiled)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
found.append(compiled())
print(sorted(set(map(float, found))), len(found))
"""


@pytest.mark.parametrize("first", [False, True])
def test_others_compile_before_beside_and_after_ours(first: bool, tmp_path: Path) -> None:
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path), "ACLNN_MAX_ISA": "native"}
    program = PROGRAM.format(first=first)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == f"[1.0, 6.0] {4 + first}", done.stderr


def test_a_numba_without_these_names_compiles_as_it_always_does(tmp_path: Path) -> None:
    hidden = "import numba, numba.core.codegen as codegen; codegen.JITCPUCodegen._library_class\n"
    hidden += "import numpy as np, aclnn; del codegen.JITCodeLibrary\n"
    program = hidden + "print(aclnn.elu(np.zeros(3, np.float32), engine='fast').tolist())"
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path), "ACLNN_MAX_ISA": "native"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[0.0, 0.0, 0.0]", done.stderr


def test_a_kernel_is_optimised_once_with_all_that_it_calls(tmp_path: Path) -> None:
    program = """
import numba.core.codegen as codegen
from aclnn.kernels.native import jit
asked, ask = [], codegen.CPUCodegen._module_pass_manager
codegen.CPUCodegen._module_pass_manager = lambda *given, **how: asked.append(1) or ask(*given, **how)
jit.load("convert.dense", "FF"), jit.load("sums.along_rows", "FiFiiII")
print(len(asked))
"""
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path), "ACLNN_MAX_ISA": "native"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "2", done.stderr


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_after_compiling_as_it_was_before(enabled: bool, tmp_path: Path) -> None:
    program = f"""
import gc
from aclnn.kernels.native import jit
(gc.enable if {enabled} else gc.disable)()
jit.load("convert.dense", "FF")
try:
    jit.load("convert.dense", "?")
except Exception as error:
    print(gc.isenabled())
"""
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path), "ACLNN_MAX_ISA": "native"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == str(enabled), done.stderr
