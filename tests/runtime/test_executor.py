"""The two phases: plans, executors, addresses, workspaces, the plan cache."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.call import Call
from aclnn.kernels.native.memory import LINE
from aclnn.kernels.registry import Prepared
from aclnn.runtime.call_cache import CachedCall, CallCache
from aclnn.runtime.executor import Executor
from aclnn.runtime.memory import LARGE
from aclnn.runtime.plan import Plan, make_plan

X = np.array([-2, -1, 0, 1], np.float32)
ONES = (1.0, 1.0, 1.0)


def plan(out: Any = None, **settings: Any) -> Executor:
    return aclnn.elu_backward.plan(X, *ONES, True, X, out=out, **settings)


def test_phase_1_says_what_will_run_and_phase_2_runs_it_once() -> None:
    executor = plan(engine="numpy")
    assert executor.workspace_size == 0
    assert executor.kernel == "numpy"
    assert executor.refused == ()
    assert executor.explain() == "aclnnEluBackward on Atlas A2: kernel numpy, workspace 0 bytes"
    assert executor.run().tolist() == [2, 0, 0, 1]
    with pytest.raises(aclnn.AclnnError, match="already run") as refused:
        executor.run()
    assert refused.value.code == 561000


def test_phase_2_runs_on_a_stream_and_the_result_is_there_after_synchronize() -> None:
    out = np.full(4, np.nan, np.float32)
    with aclnn.Stream() as stream:
        plan(out).run(stream=stream)
    assert out.tolist() == [2, 0, 0, 1]


def test_a_repeatable_executor_runs_any_number_of_times_and_addresses_may_be_exchanged() -> None:
    out = np.empty(4, np.float32)
    executor = aclnn.elu_backward.plan(X, *ONES, True, X, out=out, repeatable=True)
    for _ in range(3):
        out[:] = np.nan
        executor.run()
        assert out.tolist() == [2, 0, 0, 1]
    other, elsewhere = X * 2, np.empty(4, np.float32)
    executor.set_address("grad_output", other)
    executor.set_address("gradInput", elsewhere)
    executor.run()
    assert elsewhere.tolist() == [4, 0, 0, 2]


def test_strides_of_axes_of_length_one_do_not_matter_for_an_address() -> None:
    x, out = np.ones((1, 4), np.float32), np.full((1, 4), np.nan, np.float32)
    other = np.arange(20, dtype=np.float32).reshape(5, 4)[::5]
    executor = aclnn.elu_backward.plan(x, *ONES, True, x, out=out, repeatable=True)
    executor.set_address("grad_output", other)
    executor.run()
    assert out.tolist() == [[0, 1, 2, 3]]


def test_work_in_flight_keeps_the_addresses_it_was_given() -> None:
    gate = threading.Event()
    first, second = np.zeros(4, np.float32), np.zeros(4, np.float32)
    executor = aclnn.elu_backward.plan(X, *ONES, True, X, out=first, repeatable=True)
    with aclnn.Stream() as stream:
        stream.submit(gate.wait)
        executor.run(stream=stream)
        executor.set_address("grad_input", second)
        gate.set()
    assert first.tolist() == [2, 0, 0, 1]
    assert second.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("gradOutput", np.zeros(5, np.float32), r"planned as float32 \[4\] with strides \[1\] but the new memory is"),
        ("gradOutput", np.zeros(4, np.float16), "float16"),
        ("gradOutput", np.zeros(8, np.float32)[::2], r"strides \[2\]"),
        ("alpha", np.zeros(4, np.float32), "no tensor 'alpha'; choose one of grad_output, self_or_result, grad_input"),
        ("gradOutput", None, "None"),
    ],
)
def test_an_address_of_another_spec_is_refused(name: str, array: Any, says: str) -> None:
    with pytest.raises(aclnn.AclnnError, match=says):
        plan(repeatable=True).set_address(name, array)


def test_overlaps_are_refused_also_after_an_exchange_and_the_same_view_is_in_place() -> None:
    memory = np.arange(8, dtype=np.float32)
    aclnn.elu_backward(memory[:4], *ONES, True, memory[:4], out=memory[:4])
    with pytest.raises(aclnn.AclnnError, match="gradInput overlaps gradOutput in memory") as refused:
        aclnn.elu_backward(memory[:4], *ONES, True, X, out=memory[1:5])
    assert refused.value.code == 161002
    executor = plan(np.empty(4, np.float32), repeatable=True)
    executor.set_address("grad_output", memory[:4])
    executor.set_address("grad_input", memory[2:6])
    with pytest.raises(aclnn.AclnnError, match="overlaps"):
        executor.run()


def test_interleaved_views_that_share_no_element_are_taken() -> None:
    memory = np.zeros(8, np.float32)
    memory[::2] = X
    aclnn.elu_backward(memory[::2], *ONES, True, X, out=memory[1::2])
    assert memory[1::2].tolist() == [2, 0, 0, 1]


def needing_workspace(size: int, seen: list[int]) -> Executor:
    """An executor of a kernel that wants scratch, whatever kernels are installed."""
    values = dict(plan().plan.call.values)
    prepared = Prepared(lambda: lambda workspace, *tensors: seen.append(workspace.size), size)
    made = Plan(ops.find("elu_backward"), Call(values, plan().plan.call.device), "test", (), prepared)
    return Executor(made, [X, X, np.empty(4, np.float32)])


def test_the_workspace_is_checked() -> None:
    seen: list[int] = []
    for workspace, code in ((None, 161001), (np.empty(99, np.uint8), 161002), (bytes(100), 161002)):
        with pytest.raises(aclnn.AclnnError) as refused:
            needing_workspace(100, seen).run(workspace)
        assert refused.value.code == code
    executor = needing_workspace(100, seen)
    with pytest.raises(aclnn.AclnnError):
        executor.run(None)
    executor.run(bytearray(128))  # a refused call did not use the executor up
    assert seen == [128]


@pytest.mark.parametrize("name", ["gradInput", "gradOutput", "selfOrResult"])
def test_a_tensor_inside_the_workspace_is_refused(name: str) -> None:
    memory = np.zeros(64, np.float32)
    executor = needing_workspace(100, [])
    executor.set_address(name, memory[:4])
    with pytest.raises(aclnn.AclnnError, match=f"{name} overlaps the workspace; the two must be apart"):
        executor.run(memory)


def failing(error: BaseException) -> Executor:
    def run(workspace: Any, *tensors: Any) -> None:
        raise error

    made = plan().plan
    return Executor(Plan(made.op, made.call, "test", (), Prepared(lambda: run)), [X, X, np.empty(4, np.float32)])


def test_what_a_kernel_raises_becomes_a_code() -> None:
    with pytest.raises(aclnn.AclnnError, match="kernel test failed with ZeroDivisionError") as refused:
        failing(ZeroDivisionError("oh")).run()
    assert refused.value.code == 561000
    with pytest.raises(aclnn.AclnnError, match="out of memory") as refused:
        failing(MemoryError()).run()
    assert refused.value.code == 361001
    stream = aclnn.Stream()
    failing(ZeroDivisionError("oh")).run(stream=stream)
    with pytest.raises(aclnn.AclnnError, match="ZeroDivisionError"):
        stream.synchronize()


def test_plans_are_cached_by_signature_and_the_cache_is_bounded() -> None:
    aclnn.cache_clear()
    for _ in range(5):
        aclnn.elu_backward(X, *ONES, True, X)
    info = aclnn.cache_info()
    assert (info.hits, info.misses, info.size) == (4, 1, 1)
    aclnn.elu_backward(X, 1.0, -0.0, 1.0, True, X)
    aclnn.elu_backward(X, 1.0, 0.0, 1.0, True, X)
    assert aclnn.cache_info().size == 3
    small = CallCache(most_calls=2)
    for key in "abcb":
        small.get(key, lambda: plan().plan)
    assert small.info().size == 2
    small.get("b", lambda: pytest.fail("b was used last and must still be there"))


def test_a_failing_plan_is_not_cached() -> None:
    aclnn.cache_clear()
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError):
            aclnn.elu_backward(X, *ONES, True, X[:2])
    assert aclnn.cache_info().size == 0


def test_settings_nest_and_an_argument_beats_a_context() -> None:
    with aclnn.engine("reference"):
        assert plan().kernel == "reference"
        with aclnn.engine("numpy"):
            assert plan().kernel == "numpy"
        assert plan(engine="numpy").kernel == "numpy"
        assert plan().kernel == "reference"
    double = X.astype(np.float64)
    with aclnn.product("cpu"):
        assert aclnn.elu_backward(double, *ONES, True, double).dtype == np.float64
    with aclnn.threads(1):
        plan()


@pytest.mark.parametrize("wrong", [0, -1, "x", None])
def test_a_wrong_thread_count_is_refused(wrong: Any) -> None:
    with pytest.raises(aclnn.AclnnError, match="whole number of at least 1"), aclnn.threads(wrong):
        pass


def test_an_engine_that_is_not_usable_is_an_error_that_lists_the_choices() -> None:
    with pytest.raises(aclnn.AclnnError, match="choose one of auto, fast, numpy, reference"):
        plan(engine="gpu")


def test_each_thread_has_its_own_context() -> None:
    seen: list[str] = []
    with aclnn.engine("reference"):
        thread = threading.Thread(
            target=lambda: seen.append(aclnn.elu_backward.plan(X, *ONES, True, X, engine=None).kernel)
        )
        thread.start()
        thread.join()
    assert seen != ["reference"]


def test_make_plan_raises_the_first_broken_rule() -> None:
    values = {**plan().plan.call.values, "gradInput": None}
    with pytest.raises(aclnn.AclnnError, match="gradInput is null"):
        make_plan(ops.find("elu_backward"), Call(values, plan().plan.call.device), "auto", 1)


def test_nothing_is_logged_by_an_ordinary_call(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "aclnn"):
        aclnn.elu_backward(X, *ONES, True, X)
    assert not caplog.records


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_large_outputs_begin_a_cache_line(dtype: Any) -> None:
    x = np.ones((3, LARGE), dtype)
    planned = aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, False, x).result
    for out in (planned, *(aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x) for _ in range(2))):
        assert out.ctypes.data % LINE == 0
        assert (out.shape, out.dtype, out.flags.c_contiguous, out.flags.writeable) == (x.shape, x.dtype, True, True)


def test_a_run_inside_the_run_of_the_same_executor_is_refused() -> None:
    """As the handler of a signal would make it: it must neither wait for itself nor write into the outer run."""
    refusals: list[aclnn.AclnnError] = []

    def run(workspace: Any, *tensors: Any) -> None:
        try:
            executor.run()
        except aclnn.AclnnError as error:
            refusals.append(error)

    made = plan().plan
    inside = Plan(made.op, made.call, "test", (), Prepared(lambda: run))
    executor = Executor(inside, [X, X, np.empty(4, np.float32)], repeatable=True)
    for _ in range(2):
        executor.run()
    assert [e.code for e in refusals] == [561000] * 2
    assert "at work on this very thread" in refusals[0].message


def test_executors_are_in_no_registry_whose_callbacks_could_swallow_an_interrupt() -> None:
    assert not weakref.getweakrefs(plan())


def test_a_kernel_that_cannot_make_its_run_is_a_code() -> None:
    def fail() -> Any:
        raise OSError("no threads")

    made = plan().plan
    broken = Plan(made.op, made.call, "test", (), Prepared(fail))
    for attempt in (lambda: CachedCall(broken).run(None, X, X, X), lambda: Executor(broken, [X, X, X])):
        with pytest.raises(aclnn.AclnnError, match="kernel test failed with OSError") as refused:
            attempt()
        assert refused.value.code == 561000
