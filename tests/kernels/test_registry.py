"""What the registry adds to every numpy kernel."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import aclnn

X = np.array([-np.inf, -1000.0, np.nan, np.inf], np.float32)
G = np.array([np.inf, 1e-45, 1.0, -np.inf], np.float32)


def gradient() -> np.ndarray:
    with aclnn.engine("numpy"):
        return aclnn.elu_backward(G, 3e38, 1.0, 2.0, False, X)


@pytest.mark.parametrize("strictness", ["raise", "warn", "ignore"])
def test_no_kernel_warns_and_the_callers_settings_stay(strictness: str) -> None:
    with np.errstate(all=strictness):  # type: ignore[call-overload]
        before = np.geterr()
        for _ in range(3):
            gradient()
        assert np.geterr() == before


def test_a_run_may_be_entered_while_it_runs() -> None:
    """As in the child of a fork that happened while another thread was inside."""
    plan = aclnn.elu_backward.plan(G, 1.0, 1.0, 1.0, False, X, engine="numpy").plan
    run, out = plan.prepared.instantiate(), np.empty_like(G)
    inside: list[str] = []

    class Curious(np.ndarray):
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **more: object) -> object:
            if not inside:
                inside.append("once")
                run(None, G, X, out)
            plain = [i.view(np.ndarray) if isinstance(i, Curious) else i for i in inputs]
            return getattr(ufunc, method)(*plain, **more)

    run(None, G, X.view(Curious), out)
    assert inside


def test_threads_do_not_meet_in_a_run() -> None:
    failed: list[BaseException] = []
    expected = gradient().tobytes()

    def work() -> None:
        try:
            for _ in range(300):
                assert gradient().tobytes() == expected
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed
