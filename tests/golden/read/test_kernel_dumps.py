"""Dumps of kernels: files matched to arguments by a map, or two dumps to each other by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import aclnn
from tests.golden.planting import planted
from tests.golden.test_command import aclnn_compare

MAP = {"input.0": "gradOutput", "input.1": "selfOrResult", "output.0": "gradInput"}


def write(folder: Path, when: int, factor: float = 1.0, name: str = "net.act") -> dict[str, object]:
    run = planted("aclnnEluBackward", shape=(6, 40))
    folder.mkdir(exist_ok=True)
    for part, argument in MAP.items():
        array = run.arrays[argument] * np.float32(factor if part == "output.0" else 1)
        np.save(folder / f"EluGrad.{name}.{when % 7}.3.{when}.{part}.npy", array)
    np.save(folder / f"Add.other.1.1.{when}.output.0.npy", np.ones(3, np.float32))
    plain = {name: getattr(value, "value", value) for name, value in run.inputs().items()}
    return {name: value for name, value in plain.items() if not isinstance(value, np.ndarray)}


def test_a_map_makes_a_call_of_it(tmp_path: Path) -> None:
    said = write(tmp_path / "d", 1700)
    found = aclnn.compare(tmp_path / "d", op="aclnnEluBackward", arguments=said, files=MAP)
    assert (found.passed, {r.case for r in found.reports}) == (True, {"EluGrad.net.act"})
    by_type = {"EluGrad": {"op": "aclnnEluBackward", "map": MAP, "arguments": said}}
    assert aclnn.compare(tmp_path / "d", files=by_type).passed
    (tmp_path / "map.json").write_text(json.dumps(by_type))
    code, text = aclnn_compare("-tp", tmp_path / "d", "--map", tmp_path / "map.json")
    assert (code, text.splitlines()[-1]) == (0, "next: nothing; the target is right")
    write(tmp_path / "d", 1800, 1.01)
    found = aclnn.compare(tmp_path / "d", files=by_type)
    assert [r.case for r in found.reports if r.sound is False] == ["EluGrad.net.act.1"]


def test_two_dumps_are_paired_without_their_timestamps(tmp_path: Path) -> None:
    write(tmp_path / "a", 1700)
    write(tmp_path / "b", 9999)
    assert aclnn.compare(tmp_path / "a", tmp_path / "b").passed
    write(tmp_path / "c", 5, 1.5)
    found = aclnn.compare(tmp_path / "a", tmp_path / "c")
    assert [r.case for r in found.reports if r.status == "fail"] == ["EluGrad.net.act"]
    write(tmp_path / "a", 1701, name="net.more")
    found = aclnn.compare(tmp_path / "a", tmp_path / "b")
    assert "EluGrad.net.more is not in the golden" in str(found)
    assert found.exit_code() == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "say which is which argument"),
        ({"files": MAP}, "needs the operator"),
        ({"files": {"X": {"op": "aclnnEluBackward", "map": MAP}}}, "has kernels of the types Add, EluGrad"),
        ({"files": {"X": 3}}, "it must have an op and a map"),
        ({"files": {"X": {"op": "o", "map": {"in.0": "x"}}}}, "files are input.0"),
        ({"files": []}, "says nothing of which file is which argument"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, given: dict[str, object], sentence: str) -> None:
    write(tmp_path / "d", 1)
    with pytest.raises(aclnn.AclnnError, match=sentence):
        aclnn.compare(tmp_path / "d", **given)
