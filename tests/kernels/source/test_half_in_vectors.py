"""float16 on AVX2: conversions are made eight at a time, or a 16-bit call takes longer than one of 32 bits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn.kernels.native import isa

pytest.importorskip("numba")
pytestmark = pytest.mark.skipif(isa.architecture() != "x86_64", reason="AVX2 is x86's")

SHOW = """
import sys
from aclnn.kernels.native import jit
jit._machine_code = lambda text, *_: jit._machine().emit_assembly(jit._llvm().parse_assembly(text))
print(jit._compile(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("kernel", "types"),
    [
        ("lstm_cell.backward", "HHHHHHHHIiiiiiFi"),
        ("lstm_cell.forward", "HHHHHHHHIii"),
        ("elu.backward", "HHHfffi"),
        ("elu.forward", "HHfff"),
    ],
)
def test_elements_are_converted_by_vectors(kernel: str, types: str, tmp_path: Path) -> None:
    environment = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path), "ACLNN_MAX_ISA": "avx2"}
    ended = subprocess.run([sys.executable, "-c", SHOW, kernel, types], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    if "vcvtph2ps" not in ended.stdout:
        pytest.skip("this processor has no AVX2 with F16C")
    for conversion in ("vcvtph2ps", "vcvtps2ph"):
        assert re.search(rf"{conversion}\s.*%ymm", ended.stdout), conversion
