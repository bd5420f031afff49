"""Dumps of msprobe that lack something, or lie."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.base import exit_codes
from aclnn.golden.result import SKIPPED
from tests.golden.dumping import CONV, DumpWriter, entry, judged, save, small, why


def test_a_missing_file_is_said_and_not_passed_over(tmp_path: Path) -> None:
    folder = small(tmp_path).finish()
    (tmp_path / "dump_tensor_data" / f"{CONV}.backward.output.1.pt").unlink()
    found = judged(folder)
    assert found.passed
    assert why(found) == {
        f"{CONV}.backward: gradWeight": f"gradWeight: its file {CONV}.backward.output.1.pt is missing"
    }
    (tmp_path / "dump_tensor_data" / f"{CONV}.forward.input.0.pt").unlink()
    found = judged(folder)
    assert found.exit_code() == exit_codes.BAD_INPUT
    assert {r.status for r in found.reports} == {SKIPPED}


def test_statistics_alone_judge_nothing(tmp_path: Path) -> None:
    w = small(tmp_path)
    for told in (*w.forwards[f"{CONV}.forward"]["input_args"][:3], *w.forwards[f"{CONV}.forward"]["output"]):
        del told["data_name"]
    found = judged(w.finish())
    assert found.exit_code() == exit_codes.BAD_INPUT
    assert "only statistics; dump with task tensor" in str(found)


def test_paths_stay_inside(tmp_path: Path) -> None:
    folder = small(tmp_path / "dump").finish()
    secret = tmp_path / "secret.pt"
    save(secret, np.zeros((2, 3, 8, 8), np.float32))
    told = {"data_name": "../../secret.pt"}
    entry(folder, lambda data: data[f"{CONV}.forward"]["input_args"][0].update(told))
    assert "leads outside of the dump" in why(judged(folder))[f"{CONV}.forward"]
    path = folder / "dump_tensor_data" / "link.pt"
    os.symlink(secret, path)
    entry(folder, lambda data: data[f"{CONV}.forward"]["input_args"][0].update({"data_name": "link.pt"}))
    assert "leads outside of the dump" in why(judged(folder))[f"{CONV}.forward"]


LIES: dict[str, Any] = {
    "another shape": ({"shape": [2, 3, 8, 9]}, "has shape [2, 3, 8, 8] but dump.json says [2, 3, 8, 9]"),
    "another dtype": ({"dtype": "torch.float64"}, "has dtype float32 but its description says float64"),
    "a strange dtype": ({"dtype": "torch.qint8"}, "input is no tensor in the dump"),
    "a huge shape": ({"shape": [2**40, 2**40]}, "but dump.json says"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_is_not_what_dump_json_says(tmp_path: Path, name: str) -> None:
    changed, sentence = LIES[name]
    folder = small(tmp_path).finish()
    entry(folder, lambda data: data[f"{CONV}.forward"]["input_args"][0].update(changed))
    assert sentence in why(judged(folder))[f"{CONV}.forward"]


BROKEN = {
    "no json": ("{", "is damaged or not what its name says"),
    "a list": ("[]", "it is no JSON object"),
    "twice": ('{"data": {"a": 1, "a": 2}}', "it says a twice"),
    "cut off": ('{"data": {"a": 1', "is damaged"),
    "too deep": ('{"data": {"Functional.elu.0.forward": ' + "[" * 100_000, "nests too deeply"),
    "another framework": ('{"framework": "mindspore", "data": {}}', "only pytorch is understood"),
    "nothing of ours": ('{"data": {"Tensor.add.0.forward": {}}}', "has no call of ours"),
    "a shape of words": (
        '{"data": {"Functional.elu.0.forward": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", '
        '"shape": "x"}]}}}',
        "a tensor has shape x",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_dump_json_is_one_sentence(tmp_path: Path, name: str) -> None:
    text, sentence = BROKEN[name]
    (tmp_path / "dump.json").write_text(text)
    with pytest.raises(aclnn.AclnnError, match=sentence.replace("[", r"\[")) as caught:
        aclnn.compare(tmp_path)
    assert exit_codes.of(caught.value.code) == exit_codes.BAD_INPUT


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"input_args": 3, "output": 4},
        {"input_args": [None, None], "input_kwargs": [], "output": []},
        {"input_args": [{"type": "int", "value": [1]}] * 9, "input_kwargs": {"x": 1}, "output": [None]},
    ],
)
@pytest.mark.parametrize(
    "name", ["Functional.conv2d.0.forward", "Module.a.LSTM.forward.0", "Functional.elu.0.backward"]
)
def test_entries_of_any_kind_are_reasons_and_no_crash(tmp_path: Path, name: str, told: Any) -> None:
    (tmp_path / "dump.json").write_text(json.dumps({"data": {name: told}}))
    found = judged(tmp_path)
    assert {r.status for r in found.reports} == {SKIPPED}, str(found)
    assert found.exit_code() == exit_codes.BAD_INPUT


def test_numbers_beyond_reason(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    w.elu("Functional.elu.0", w.draw(5, 6), [1.0, False], 1.0)
    w.lines["Functional.elu.0.forward"] = int("9" * 4000)
    w.forwards["Functional.elu.0.forward"]["input_args"][1]["value"] = 10**400
    w.forwards["Functional.elu.0.forward"]["output"].append({"dtype": "torch.float32", "shape": [2**62] * 40})
    found = judged(w.finish())
    assert "its entry cannot be understood" in why(found)["Functional.elu.0.forward"]
    assert found.exit_code() == exit_codes.BAD_INPUT
