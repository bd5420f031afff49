"""What is fetched once stays; what is not whole or made in another way is made anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulated.packages import made_once


def test_a_folder_is_made_once_per_recipe(tmp_path: Path) -> None:
    folder, made = tmp_path / "there", list[str]()

    def make(into: Path) -> None:
        made.append(into.name)
        (into / "file").touch()

    for recipe, times in (("a", 1), ("a", 1), ("b", 2)):
        assert (made_once(folder, recipe, make) / "file").exists()
        assert len(made) == times


def test_what_failed_half_way_is_made_anew(tmp_path: Path) -> None:
    def fail(into: Path) -> None:
        (into / "half").touch()
        raise SystemExit("no network")

    with pytest.raises(SystemExit):
        made_once(tmp_path / "there", "a", fail)
    folder = made_once(tmp_path / "there", "a", lambda into: (into / "whole").touch())
    assert sorted(file.name for file in folder.iterdir()) == ["made-from", "whole"]
