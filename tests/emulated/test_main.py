"""What an emulated step says when it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.emulated.__main__ import _timed
from tests.emulated.machines import MACHINES


@pytest.mark.parametrize(("ends", "code"), [("", 0), ("import sys; sys.exit(3)", 3), ("import os; os.abort()", 6)])
def test_a_step_that_a_signal_ends_has_failed(ends: str, code: int, tmp_path: Path) -> None:
    assert _timed(MACHINES["arm"], "a step", [sys.executable, "-c", ends], tmp_path) == code
