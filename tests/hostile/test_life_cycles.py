"""Executors and streams through every order of calls: what is allowed works, what is not has its code."""

from __future__ import annotations

import _thread
import gc
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

import aclnn
from aclnn.runtime import stream
from tests.hostile.liars import answer

X = np.linspace(-2, 2, 12, dtype=np.float32)
ENGINES = st.sampled_from(["auto", "fast", "numpy", "reference"])


def elu(x: Any, alpha: float) -> Any:
    return aclnn.elu(x, alpha, engine="reference")


class Tracked:
    """An executor, and what the contract says it must do next."""

    def __init__(self, alpha: float, engine: str, repeatable: bool):
        self.alpha, self.repeatable = alpha, repeatable
        self.input, self.output = X.copy(), np.full_like(X, np.nan)
        self.executor = aclnn.elu.plan(self.input, alpha, out=self.output, engine=engine, repeatable=repeatable)
        self.runs = 0

    @property
    def may_run(self) -> bool:
        return self.repeatable or not self.runs

    def workspace(self) -> Any:
        return np.empty(self.executor.workspace_size, np.uint8)


class LifeCycles(RuleBasedStateMachine):
    """Executors of one operator on several streams, run, exchanged, dropped and closed in any order."""

    executors: Bundle[Tracked] = Bundle("executors")
    streams: Bundle[aclnn.Stream] = Bundle("streams")

    def __init__(self) -> None:
        super().__init__()
        self.closed: set[int] = set()
        self.expected: list[tuple[Any, Any]] = []

    @rule(target=executors, alpha=st.sampled_from([0.5, 1.0, 2.0]), engine=ENGINES, repeatable=st.booleans())
    def plan(self, alpha: float, engine: str, repeatable: bool) -> Tracked:
        return Tracked(alpha, engine, repeatable)

    @rule(target=streams)
    def make_stream(self) -> aclnn.Stream:
        return aclnn.Stream()

    @rule(one=executors)
    def run(self, one: Tracked) -> None:
        refused = answer(lambda: one.executor.run(one.workspace()))
        self._ran(one, refused, may_run=one.may_run)

    @rule(one=executors, stream=streams)
    def run_on(self, one: Tracked, stream: aclnn.Stream) -> None:
        may_run = one.may_run and id(stream) not in self.closed
        refused = answer(lambda: one.executor.run(one.workspace(), stream))
        self._ran(one, refused, may_run)

    def _ran(self, one: Tracked, refused: aclnn.AclnnError | None, may_run: bool) -> None:
        assert (refused is None) == may_run
        if refused is None:
            one.runs += 1
            self.expected.append((one.output, elu(one.input, one.alpha)))
            assert one.executor.result is one.output
        else:
            assert refused.code in (561000, 161002)

    @rule(one=executors, factor=st.sampled_from([-1, 2]))
    def exchange(self, one: Tracked, factor: int) -> None:
        one.input, one.output = X * factor, np.full_like(X, np.nan)
        one.executor.set_address("self", one.input)
        one.executor.set_address("out", one.output)

    @rule(one=executors, wrong=st.sampled_from([None, X[:3], X.astype(np.float16), X[::2], "x", 3]))
    def exchange_for_something_else(self, one: Tracked, wrong: Any) -> None:
        assert answer(lambda: one.executor.set_address("self", wrong)) is not None

    @rule(one=executors, wrong=st.sampled_from(["x", [1], object(), np.zeros(1, np.uint8)]))
    def run_on_a_wrong_stream(self, one: Tracked, wrong: Any) -> None:
        refused = answer(lambda: one.executor.run(one.workspace(), wrong))
        assert refused is not None
        assert refused.code in (561000, 161002)

    @rule(stream=streams)
    def synchronize(self, stream: aclnn.Stream) -> None:
        stream.synchronize()
        assert stream.query()

    @rule(stream=streams)
    def close(self, stream: aclnn.Stream) -> None:
        stream.close()
        self.closed.add(id(stream))

    @rule()
    def forget_plans(self) -> None:
        aclnn.cache_clear()

    @invariant()
    def the_cache_is_bounded(self) -> None:
        info = aclnn.cache_info()
        assert info.size <= info.limit

    def teardown(self) -> None:
        for queue in list(stream._at_work.values()):
            queue.synchronize()
        for output, expected in self.expected:
            assert np.allclose(output, expected, rtol=1e-6, atol=1e-6)


TestLifeCycles = LifeCycles.TestCase
TestLifeCycles.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_of_two_threads_one_runs_an_executor_that_runs_once() -> None:
    for _ in range(50):
        executor = aclnn.elu.plan(X, engine="numpy")
        start, answers = threading.Barrier(4), []

        def race(executor: Any = executor, start: Any = start, answers: Any = answers) -> None:
            start.wait()
            answers.append(answer(executor.run))

        threads = [threading.Thread(target=race) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [a is None for a in answers].count(True) == 1
        assert {a.code for a in answers if a is not None} == {561000}


def test_streams_that_nobody_holds_finish_their_work_and_their_threads_end() -> None:
    before, outputs = _thread._count(), []
    for _ in range(50):
        dropped, out = aclnn.Stream(), np.full_like(X, np.nan)
        aclnn.elu.plan(X, out=out, engine="numpy").run(stream=dropped)
        outputs.append(out)
        del dropped
    gc.collect()
    for _ in range(1000):
        if _thread._count() <= before:
            break
        time.sleep(0.01)
    assert _thread._count() <= before
    assert all(np.isfinite(out).all() for out in outputs)


def test_work_that_waits_for_its_own_stream_is_refused() -> None:
    own = aclnn.Stream()
    own.submit(own.synchronize)
    with pytest.raises(aclnn.AclnnError, match="cannot wait for the stream itself"):
        own.synchronize()
    own.submit(lambda: own.close() and None)  # closing from within is a wish, not a wait
    own.synchronize()
    with pytest.raises(aclnn.AclnnError, match="closed"):
        own.submit(lambda: None)


def test_a_stream_that_gets_no_thread_says_so_and_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> None:
        raise RuntimeError("can't start new thread")

    idle, executor = aclnn.Stream(), aclnn.elu.plan(X, engine="numpy")
    with monkeypatch.context() as patch:
        patch.setattr(stream, "_start_thread", refuse)
        with pytest.raises(aclnn.AclnnError, match="no thread to run on") as refused:
            executor.run(stream=idle)
    assert refused.value.code == 361001
    idle.synchronize()
    executor.run(stream=idle)  # the refusal did not use it up
    idle.synchronize()


@pytest.mark.parametrize(
    "workspace", [3, "x", [], object(), np.zeros((4, 4), np.uint8)[::2, ::2], np.zeros(99, object)]
)
def test_a_workspace_must_be_one_block_of_bytes(workspace: Any) -> None:
    from tests.runtime.test_executor import needing_workspace

    with pytest.raises(aclnn.AclnnError, match="one block of bytes") as refused:
        needing_workspace(100, []).run(workspace)
    assert refused.value.code == 161002


def test_a_run_returns_what_it_wrote_to_also_after_an_exchange() -> None:
    executor = aclnn.elu.plan(X, repeatable=True, engine="numpy")
    first, elsewhere = executor.run(), np.empty_like(X)
    executor.set_address("out", elsewhere)
    assert executor.run() is elsewhere
    assert first is not elsewhere
    cell = [np.ones((1, 8), np.float32), np.ones((1, 8), np.float32), np.ones((1, 2), np.float32)]
    several = aclnn.thnn_fused_lstm_cell.plan(*cell, repeatable=True, engine="numpy")
    state = np.empty((1, 2), np.float32)
    several.set_address(several.plan.op.outputs[1].name, state)
    assert several.run()[1] is state


@pytest.mark.parametrize("index", [-1, 99, "x", None, 1.0])
def test_an_element_of_a_list_that_is_not_there(index: Any) -> None:
    from aclnn import ops
    from aclnn.contract.cases import fill

    case = next(c for c in ops.cases(ops.find("aclnnLSTM")))
    filled = fill(case)
    op = case.op
    given = {a.name: filled[a.name] for a in op.inputs}
    executor = aclnn.lstm._plan(given, None, case.device, "numpy", True)
    lists = next(a.name for a in op.inputs if a.kind == "tensor_list")
    with pytest.raises(aclnn.AclnnError, match="index is"):
        executor.set_address(lists, filled[lists][0], index)
