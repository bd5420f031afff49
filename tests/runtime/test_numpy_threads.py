"""One thread of the BLAS while something is judged, and as many as before afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclnn.runtime import numpy_threads


@pytest.fixture
def switch() -> numpy_threads._Switch:
    found = numpy_threads._switch()
    if found is None:
        pytest.skip("this numpy does not bring OpenBLAS along")
    return found


def test_one_thread_and_then_as_before(switch: numpy_threads._Switch) -> None:
    before = switch.get()
    switch.set(2)
    try:
        with pytest.raises(KeyError):
            _fail(switch)
        assert switch.get() == 2
    finally:
        switch.set(before)


def test_of_two_that_overlap_the_last_one_puts_it_back(switch: numpy_threads._Switch) -> None:
    before = switch.get()
    switch.set(2)
    try:
        first, second = numpy_threads.one_thread(), numpy_threads.one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert switch.get() == 1
        second.__exit__(None, None, None)
        assert switch.get() == 2
    finally:
        switch.set(before)


def _fail(switch: numpy_threads._Switch) -> None:
    with numpy_threads.one_thread():
        assert switch.get() == 1
        raise KeyError


def test_a_library_that_cannot_be_told_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libopenblas.so").write_text("no library")
    assert numpy_threads._switch_of(tmp_path / "libopenblas.so") is None
    monkeypatch.setattr(numpy_threads, "_switch", lambda: None)
    with numpy_threads.one_thread():
        pass
