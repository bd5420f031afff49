"""Eight threads with streams of their own and all operators mixed: every result is right, and nothing grows."""

from __future__ import annotations

import ctypes
import random
import resource
import threading
from typing import Any

import pytest

from aclnn import ops
from aclnn.contract.cases import Case, fill
from tests.doors.c_door import CCall, library
from tests.doors.toolchain import needs_compiler
from tests.harness import bits, call

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore::UserWarning")]

THREADS = 8
Expected = list[tuple[Case, list[bytes]]]


def expected_bits() -> Expected:
    """Small cases of every operator with what Python computes for them."""
    found = []
    for op in ops.all_ops():
        for case in list(ops.cases(op))[:4]:
            filled = fill(case, 5)
            call(case, filled)
            found.append((case, bits(case, filled)))
    return found


def work(number: int, calls: int, expected: Expected, failures: list[str]) -> None:
    lib, rng = library(), random.Random(number)
    lib.aclrtSetDevice(number % 2)
    stream = ctypes.c_void_p()
    assert lib.aclrtCreateStream(ctypes.byref(stream)) == 0
    pending: list[tuple[CCall, dict[str, Any], list[bytes]]] = []
    for i in range(calls):
        case, wanted = rng.choice(expected)
        filled = fill(case, 5)
        made = CCall(case, filled)
        if (made.plan() or made.run(stream)) != 0:
            failures.append(made.message())
        pending.append((made, filled, wanted))
        if i % 10 != 9 and i != calls - 1:
            continue
        if lib.aclrtSynchronizeStream(stream) != 0:
            failures.append(made.message())
        for one, outputs, right in pending:
            if bits(one.case, outputs) != right:
                failures.append(f"{one.case.op}: other bits")
            one.destroy()
        pending.clear()
    assert lib.aclrtDestroyStream(stream) == 0


def round_of_threads(calls: int, expected: Expected) -> list[str]:
    failures: list[str] = []
    threads = [threading.Thread(target=work, args=(n, calls, expected, failures)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.parametrize("calls", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_mixed_operators(calls: int) -> None:
    expected = expected_bits()
    assert round_of_threads(20, expected) == []
    objects, memory = library().aclnn_cpu_live_objects(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert round_of_threads(calls, expected) == []
    assert library().aclnn_cpu_live_objects() == objects
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 64 * 1024, f"{grown} KiB more than after the first round"
