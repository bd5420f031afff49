"""What holds for every fast kernel on large cases: taken, right, and the same bits every time, from two threads too."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn.contract.cases import Case, fill
from aclnn.kernels.native import jit
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.elu import elu_backward_case
from aclnn.ops.lstm import lstm_backward_case
from tests.harness import assert_sound, bits, call
from tests.kernels.cases import LARGE, executor

pytest.importorskip("numba")

MOST_STACK = 2**15  # bytes: workers may have 64 KB (OMP_STACKSIZE)
NAMES = [f"{c.op.python}-{i}" for i, c in enumerate(LARGE)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", LARGE, ids=NAMES)
def test_large_cases_are_taken_and_right(case: Case, threads: int) -> None:
    with aclnn.threads(threads):
        assert_sound(case, "fast", seed=threads)
        assert executor(case, fill(case)).kernel != "numpy"


@pytest.mark.parametrize("case", LARGE, ids=NAMES)
def test_same_bits_run_after_run_in_any_workspace(case: Case) -> None:
    found = set()
    for shift in (0, 8, 24):
        filled = fill(case, 4)
        plan = executor(case, filled)
        for _ in range(2):
            plan.run(np.full(plan.workspace_size + shift, 0xFF, np.uint8)[shift:])
            found.add(tuple(bits(case, filled)))
    assert len(found) == 1


def launch_side_by_side(case: Case, launches: int) -> None:
    """Two threads run one plan on their own data, each result must have the bits of a run alone."""
    with aclnn.threads(2):
        alone = []
        for seed in range(2):
            filled = fill(case, seed)
            call(case, filled)
            alone.append(bits(case, filled))
        wrong: list[int] = []

        def work(seed: int) -> None:
            with aclnn.threads(2):
                filled = fill(case, seed)
                plan = executor(case, filled)
                workspace = np.empty(plan.workspace_size, np.uint8)
                for _ in range(launches):
                    plan.run(workspace)
                    if bits(case, filled) != alone[seed]:
                        wrong.append(seed)

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not wrong


@pytest.mark.parametrize("case", LARGE, ids=NAMES)
def test_two_threads_at_once(case: Case) -> None:
    launch_side_by_side(case, 20)


@pytest.mark.long
@pytest.mark.parametrize("case", LARGE, ids=NAMES)
def test_two_threads_ten_thousand_times(case: Case) -> None:
    launch_side_by_side(case, 10_000)


def test_the_set_of_compiled_signatures_is_closed() -> None:
    """A kernel is compiled for the element types of its tensors and for nothing else: no shape or stride adds code."""
    few_channels = convolution_backward_case(in_channels=5, out_channels=7, size=40)  # positions are joined to blocks
    for case in (*LARGE, few_channels):
        assert_sound(case, "fast")
    before = set(jit._LOADED)
    for case in LARGE[:3]:
        assert_sound(elu_backward_case((4001,), 2.0, dtype=case.values["gradOutput"].dtype), "fast")
    assert_sound(convolution_backward_case(batch=1, in_channels=7, out_channels=5, size=30, stride=2), "fast")
    assert_sound(lstm_backward_case(5, 3, 30, 20, 3, has_bias=False), "fast")
    assert set(jit._LOADED) == before
    letters = {key.rpartition("-")[2] for key in before}
    assert all(set(types) <= set("ifIFHBP") for types in letters)


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("objdump"), reason="reads x86-64 code")
def test_no_kernel_needs_much_stack(tmp_path: Path) -> None:
    for case in LARGE:
        assert_sound(case, "fast")
    for key in jit._LOADED:
        name, _, types = key.rpartition("-")
        (tmp_path / "code.o").write_bytes(jit._object(name, types, key))
        code = subprocess.run(["objdump", "-d", tmp_path / "code.o"], capture_output=True, text=True, check=True).stdout
        frames = [int(size, 16) for size in re.findall(r"sub +\$(0x[0-9a-f]+),%rsp", code)]
        assert max(frames, default=0) <= MOST_STACK, key
