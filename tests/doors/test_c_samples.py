"""The programs of the operator documents, unmodified: they compile, link in each documented way, run and are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.doors.toolchain import (
    PROGRAMS,
    SAMPLES,
    built,
    compile_and_run,
    compile_program,
    needs_compiler,
    numbers,
    run_program,
    sample,
)

pytestmark = needs_compiler

TANH_SLOPE = 1 - np.tanh(1.0) ** 2
EXPECTED = {
    "elu": [2, -0.0, 0, 1],
    "convolution": [2] * 196 + [98] * 4 + [98] * 2,
    "conv_tbc": [2] * 10 + [5] * 4 + [5] * 2,
    "lstm": [0] * (256 + 256 + 32 + 32 + 8 + 8) + [2 * TANH_SLOPE + 1] * 8,
    "lstm_cell": [0] * 32 + [0] * 32 + [1 + TANH_SLOPE] * 8,
}
LINK_LINES = {
    "opapi": ["-lascendcl", "-lnnopbase", "-lopapi"],
    "opapi_nn": ["-lascendcl", "-lnnopbase", "-lopapi_nn", "-lopapi_math"],
    "acl_rt": ["-lacl_rt", "-lnnopbase", "-lopapi"],
}


def test_tiny_program(tmp_path: Path) -> None:
    assert compile_and_run(PROGRAMS / "tiny.cpp", tmp_path) == "[2, -0, 0, 1]\n"


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_prints_the_numbers_of_its_page(name: str, tmp_path: Path) -> None:
    printed = numbers(compile_and_run(sample(name, tmp_path), tmp_path, "-std=c++11", "-Wno-all", "-Wno-extra"))
    assert printed == [round(float(n), 6) for n in EXPECTED[name]]  # the samples print six decimals


@pytest.mark.long
@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
@pytest.mark.parametrize("line", LINK_LINES)
@pytest.mark.parametrize("name", SAMPLES)
def test_sample_links_in_every_documented_way(name: str, line: str, standard: str, tmp_path: Path) -> None:
    lib = built() / "lib64"
    link = [f"-L{lib}", *LINK_LINES[line]]
    source = sample(name, tmp_path)
    program = compile_program(source, tmp_path, f"-std={standard}", "-Wno-all", "-Wno-extra", link=link)
    ended = run_program([program], {"LD_LIBRARY_PATH": str(lib)})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(numbers(ended.stdout)) == len(EXPECTED[name])
