"""How far cores lie apart: a time between cores that there are, and nothing where it cannot be measured."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from benchmarks import cores


@pytest.fixture(autouse=True)
def library_anew() -> None:
    cores._library.cache_clear()


@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores")
def test_a_line_takes_some_time_there_and_back_and_this_thread_stays_where_it_was() -> None:
    allowed = os.sched_getaffinity(0)
    taken = cores.apart()
    assert taken is not None
    assert taken > 0
    assert os.sched_getaffinity(0) == allowed


def test_without_a_compiler_that_works_or_a_second_core_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr("shutil.which", lambda name: None)
        assert cores.apart() is None
    cores._library.cache_clear()
    with monkeypatch.context() as broken:
        broken.setattr("benchmarks.cores.SOURCE", Path("there is none"))
        assert cores.apart() is None
    cores._library.cache_clear()
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})
    assert cores.apart() is None


def test_a_core_that_this_process_may_not_use_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1023})
    assert cores.apart() is None
