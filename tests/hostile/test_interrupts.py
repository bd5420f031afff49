"""Streams survive an interrupt wherever one may be delivered: nothing hangs, no job is lost unsaid or run twice."""

from __future__ import annotations

import dis
import sys
import threading
from collections import Counter
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import pytest

import aclnn
from aclnn.runtime import stream as module
from tests.hostile import interrupts


@cache
def checkpoints(code: CodeType) -> frozenset[int]:
    """Where interrupts are delivered: behind calls and the beginning of functions, and where loops begin again."""
    found, steps = set(), list(dis.get_instructions(code))
    for step, following in pairwise(steps):
        if step.opname.startswith("CALL") or step.opname == "RESUME":
            found.add(following.offset)
        if step.opname.startswith("JUMP_BACKWARD") or step.opname.startswith("POP_JUMP_BACKWARD"):
            found.add(step.argval)
    return frozenset(found)


class Interrupter:
    """A trace function that raises at the n-th checkpoint of the stream's code, once."""

    def __init__(self, n: int):
        self.left = n

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != module.__file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in checkpoints(frame.f_code):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def install_in_frames_above(self) -> None:
        """Traces this thread, also the functions it is already in."""
        sys.settrace(self)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == module.__file__:
                frame.f_trace, frame.f_trace_opcodes = self, True
            frame = frame.f_back


class Histories:
    """One scenario under an interrupt: what ran how often, and what was said about it."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.told: list[BaseException] = []
        self.submitted: list[str] = []
        self.stream = aclnn.Stream()

    def tell(self, step: Any, *given: Any) -> bool:
        try:
            step(*given)
        except BaseException as error:
            self.told.append(error)
            return False
        return True

    def submit(self, name: str) -> None:
        if self.tell(self.stream.submit, lambda: self.ran.update([name])):
            self.submitted.append(name)

    def in_the_caller(self, interrupter: Interrupter) -> None:
        sys.settrace(interrupter)
        for name in "ab":
            self.submit(name)
        self.tell(self.stream.query)
        self.tell(self.stream.synchronize)
        self.submit("c")
        self.tell(self.stream.close)
        sys.settrace(None)

    def in_the_worker(self, interrupter: Interrupter) -> None:
        self.stream.submit(interrupter.install_in_frames_above)
        for name in "abc":
            self.submit(name)
        self.tell(self.stream.synchronize)
        self.submit("d")
        self.stream.submit(lambda: sys.settrace(None))

    def end(self) -> None:
        """The stream can still be used, or says that it is closed; and another one knows nothing of all this."""
        self.tell(self.stream.synchronize)
        self.submit("z")
        self.tell(self.stream.close)
        with aclnn.Stream() as other:
            other.submit(lambda: self.ran.update(["other"]))


@pytest.mark.parametrize("where", ["in_the_caller", "in_the_worker"])
def test_an_interrupt_at_every_place(where: str) -> None:
    for n in range(1, 2000):
        interrupter, history = Interrupter(n), Histories()

        def play(interrupter: Interrupter = interrupter, history: Histories = history) -> None:
            getattr(history, where)(interrupter)
            history.end()

        player = threading.Thread(target=play, daemon=True)
        player.start()
        player.join(20)
        assert not player.is_alive(), f"it hangs after an interrupt at checkpoint {n}"
        lost = [name for name in history.submitted if not history.ran[name]]
        assert not lost or history.told, f"{lost} lost at checkpoint {n}"
        assert len(lost) <= 1, f"{lost} lost at checkpoint {n}"
        assert max(history.ran.values()) == history.ran["other"] == 1, f"{history.ran} at checkpoint {n}"
        if where == "in_the_caller":
            assert not lost
        if interrupter.left > 0:
            assert n > 40, "there must have been more places to interrupt"
            return
    pytest.fail("the scenario never ended")


def test_real_signals_and_exceptions_from_other_threads() -> None:
    """A short one; `python -m tests.hostile.interrupts 2000` is the long one."""
    assert interrupts.outcome(60).hangs == 0
