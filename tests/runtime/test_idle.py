"""Idle runs are bounded for the process, and with them the native code that they keep alive."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.kernels import program
from aclnn.runtime import idle
from aclnn.runtime.idle import IdleRuns, idle_runs


def convolve(width: int) -> Any:
    x, w = np.ones((1, 8, 8, width), np.float32), np.ones((8, 8, 3, 3), np.float32)
    return aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, 0, engine="fast")


def alive(kind: type) -> int:
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


def test_many_shapes_keep_no_more_programs_alive_than_is_said() -> None:
    pytest.importorskip("numba")
    aclnn.cache_clear()
    before = alive(program.Session), alive(program.Program)
    for width in range(9, 9 + idle.MOST + 40):
        convolve(width)
    assert len(idle_runs) <= idle.MOST
    assert alive(program.Session) - before[0] <= idle.MOST
    assert alive(program.Program) - before[1] <= 128
    aclnn.cache_clear()
    assert len(idle_runs) == 0
    assert alive(program.Session) <= before[0]


def test_the_oldest_run_makes_room_and_is_made_again_when_it_is_wanted() -> None:
    runs = IdleRuns(most=2)
    first, second, third = (runs.cell(lambda *given: None) for _ in range(3))
    assert (len(first), len(second), len(third), len(runs)) == (0, 1, 1, 2)
    runs.clear()
    assert len(runs) == 0
    aclnn.cache_clear()
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    expected = aclnn.elu(x, engine="numpy").tobytes()
    idle_runs.clear()
    assert aclnn.elu(x, engine="numpy").tobytes() == expected
    assert len(idle_runs) == 1


def test_a_run_that_failed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from aclnn.kernels.registry import Kernel, Prepared
    from aclnn.runtime import plan as plan_module

    def fail(*given: Any) -> None:
        raise ZeroDivisionError

    kernel = Kernel("failing", "numpy", lambda call, threads: Prepared(lambda: fail))
    aclnn.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(plan_module, "kernels_of", lambda *names: (kernel,))
        for _ in range(3):
            with pytest.raises(aclnn.AclnnError):
                aclnn.elu(np.ones(3, np.float32), engine="numpy")
    aclnn.cache_clear()
    assert len(idle_runs) == 0
