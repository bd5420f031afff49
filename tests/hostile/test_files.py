"""A short run of the hostile files, and the proof that the long one would notice."""

from __future__ import annotations

import sys

import pytest

from tests.hostile import files
from tests.hostile.files import Seen


@pytest.mark.skipif(sys.platform != "linux", reason="measures its memory in /proc")
@pytest.mark.parametrize("suffix", [s for s in files.FORMATS if s != ".pt"])
def test_hostile_files_are_answered(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from aclnn.cases import batch

    monkeypatch.setattr(batch, "STEADY", 0.0)
    beyond = 10**6 * len(files.FORMATS)  # the long run begins at 0
    found = [files.read_one(beyond + files.FORMATS.index(suffix) + i * len(files.FORMATS)) for i in range(28)]
    assert [s for s in found if s.code not in (0, 1, 2) or s.seconds > files.SECONDS] == []


def test_a_run_that_fails_is_found() -> None:
    fine = Seen(0, 2, 100, 1.0, "")
    wrong = [fine._replace(code=3), fine._replace(megabytes=301), fine._replace(seconds=10.1), fine._replace(code=-11)]
    assert files.faults([fine, *wrong]) == wrong
    assert files.figures([fine, *wrong])["tracebacks"] == 2


def test_every_kind_is_drawn() -> None:
    count = len(files.FORMATS)
    seeds = (seed for seed in range(count * 40) if files.FORMATS[seed % count] != ".pt")  # which needs PyTorch
    drawn = {(case.suffix, case.kind) for case in map(files.hostile, seeds)}
    assert {kind for _, kind in drawn} == {"damaged", "lying", "bomb"}
    assert {suffix for suffix, _ in drawn} == set(files.FORMATS) - {".pt"}
