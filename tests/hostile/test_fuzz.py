"""What fuzzing found once stays found: the corpus, and a short run without guidance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import fuzz


@pytest.mark.parametrize("path", sorted(fuzz.CORPUS.iterdir()), ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore")
def test_the_corpus_is_answered(path: Path) -> None:
    fuzz.one_input(path.read_bytes())


@pytest.mark.filterwarnings("ignore")
def test_a_short_run_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz.without_guidance(3, [p.read_bytes() for p in sorted(fuzz.CORPUS.iterdir())])
    assert "nothing found" in capsys.readouterr().out
