"""Planted faults: each is reported with the right output, the right place and the right hint, and its proof."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aclnn import ops
from aclnn.golden.compare import compare
from aclnn.golden.why.hypotheses import TABLE
from tests.golden.faults import FAULTS, conv, lstm, tbc
from tests.golden.planting import Planted, planted, report_of


def with_faults(run: Planted, wrong: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a run with some of them replaced, those of a list by index."""
    outputs: dict[str, Any] = {}
    for name, value in wrong.items():
        whole, bracket, index = name.partition("[")
        if not bracket:
            outputs[name] = value
            continue
        outputs.setdefault(whole, list(run.arrays[whole]))[int(index[:-1])] = value
    return outputs


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_explained(name: str, tmp_path: Path) -> None:
    run, wrong, key = FAULTS[name]()
    found = run.compare(tmp_path, **with_faults(run, wrong))
    assert found.sound is False
    explained = 0
    for report in found.reports:
        if report.output not in wrong:
            assert report.sound, f"{report.output} is right"
            assert not report.hints
        elif not report.sound:  # a fault that happens to leave an output right needs no hint
            assert [h.key for h in report.hints] == [key], report.output
            assert report.hints[0].proof.en.endswith("100 % is in tolerance")
            assert re.search("[一-鿿]", report.hints[0].says.zh)
            explained += 1
    assert explained >= max(1, len(wrong) // 2)
    assert "follow the hint" in str(found)


def test_every_row_of_the_table_has_a_planted_fault() -> None:
    planted_keys = {FAULTS[name]()[2] for name in FAULTS}
    for row in TABLE:
        pattern = re.sub(r"{\w+}", r"\\w+", row.key)
        assert any(re.fullmatch(pattern, key) for key in planted_keys), row.key


def test_the_proof_names_the_assumption(tmp_path: Path) -> None:
    run, wrong, _ = FAULTS["conv_hf32"]()
    text = str(run.compare(tmp_path, **wrong))
    assert "with HF32 inputs 100 % is in tolerance" in text
    assert "cubeMathType is 0" in text


def test_a_result_taken_for_an_input_is_said(tmp_path: Path) -> None:
    run, wrong, _ = FAULTS["elu_is_result"]()
    (hint,) = report_of(run.compare(tmp_path, **wrong), "gradInput").hints
    assert hint.says.en == "selfOrResult was taken for the forward's input; isResult is True"


def test_a_transposed_weight_is_said_in_both_languages(tmp_path: Path) -> None:
    run, wrong, _ = FAULTS["lstm_transposed_weight"]()
    found = run.compare(tmp_path, **with_faults(run, wrong))
    (of_states,) = report_of(found, "dhPrevOut").hints
    assert of_states.says.en == "w_hh or its gradient is read and written transposed"
    assert of_states.says.zh == "w_hh按转置读取与写出"
    (of_weight,) = report_of(found, "dparamsOut[1]").hints
    assert (of_weight.says.en, of_weight.says.zh) == ("w_hh is read transposed", "w_hh按转置读取")


# Places


def wrong_at(array: Any, where: Any) -> Any:
    """The array with everything at one place off by much more than rounding."""
    off = array.copy()
    off[where] = off[where] * 1.25 + 0.5
    return off


ALL = slice(None)
PLACES = [
    ("conv", conv, {}, "gradWeight", (ALL, ALL, 2), "only in kernel row 2"),
    ("conv", conv, {}, "gradWeight", (ALL, ALL, ALL, 1), "only in kernel column 1"),
    ("conv", conv, {"size": 12}, "gradInput", (ALL, 3), "only in channel 3"),
    ("conv", conv, {"size": 12}, "gradInput", (ALL, ALL, slice(2, 4)), "only in rows 2 to 3"),
    ("group", conv, {"in_channels": 8, "out_channels": 8, "groups": 4}, "gradWeight", slice(6, 8), "only in group 3"),
    (
        "group",
        conv,
        {"in_channels": 8, "out_channels": 8, "groups": 4},
        "gradInput",
        (ALL, slice(6, 8)),
        "only in group 3",
    ),
    ("tbc", tbc, {}, "gradInput", -1, "only in the last time step"),
    ("tbc", tbc, {}, "gradInput", 0, "only in the first time step"),
    ("tbc", tbc, {}, "gradWeight", 1, "only in kernel tap 1"),
    ("lstm", lstm, {}, "dxOut", -1, "only in the last time step"),
    ("lstm", lstm, {"batch_first": True}, "dxOut", (ALL, -1), "only in the last time step"),
    ("lstm", lstm, {}, "dhPrevOut", 2, "only in layer and direction 2"),
]


@pytest.mark.parametrize(("maker", "sizes", "output", "where", "sentence"), [p[1:] for p in PLACES])
def test_concentrated_errors_are_described(
    maker: Any, sizes: dict[str, Any], output: str, where: Any, sentence: str, tmp_path: Path
) -> None:
    run = maker(**sizes)
    report = report_of(run.compare(tmp_path, **{output: wrong_at(run.arrays[output], where)}), output)
    assert report.places[0].en == sentence
    assert report.places[0].zh.startswith("仅在")
    assert not report.hints


def test_the_padded_border(tmp_path: Path) -> None:
    run = conv(size=12)
    wrong = wrong_at(run.arrays["gradInput"], ...)
    wrong[:, :, 1:-1, 1:-1] = run.arrays["gradInput"][:, :, 1:-1, 1:-1]
    report = report_of(run.compare(tmp_path, gradInput=wrong), "gradInput")
    assert [p.en for p in report.places] == ["only at the padded border"]


def test_gates_have_names(tmp_path: Path) -> None:
    run = planted("aclnnThnnFusedLstmCellBackward", batch=6, hidden_size=5)
    wrong = wrong_at(run.arrays["gradGatesOut"], (ALL, slice(10, 15)))
    report = report_of(run.compare(tmp_path, gradGatesOut=wrong), "gradGatesOut")
    assert "only in gate g" in [p.en for p in report.places]


def test_a_few_strays_do_not_hide_a_place(tmp_path: Path) -> None:
    run = conv(in_channels=16, out_channels=16)
    wrong = wrong_at(run.arrays["gradWeight"], (ALL, ALL, 2))
    wrong[0, :12, 0, 0] += 1
    report = report_of(run.compare(tmp_path, gradWeight=wrong), "gradWeight")
    assert report.places[0].en == "98.5 % of the misses are in kernel row 2"


def test_errors_everywhere_have_no_place(tmp_path: Path) -> None:
    run = conv()
    report = report_of(run.compare(tmp_path, gradInput=run.arrays["gradInput"] * 2), "gradInput")
    assert not report.places


@pytest.mark.parametrize("op", [o.name for o in ops.all_ops()])
def test_noise_gets_no_hint(op: str, tmp_path: Path) -> None:
    """A fault nobody knows is not blamed on anything."""
    run = planted(op)
    rng = np.random.default_rng(1)
    arg = run.op.outputs[0]
    wrong = run.arrays[arg.name] + rng.uniform(0.5, 1, run.arrays[arg.name].shape).astype(run.arrays[arg.name].dtype)
    found = run.compare(tmp_path, **{arg.name: wrong})
    assert report_of(found, arg.name).sound is False
    assert not any(r.hints for r in found.reports)


def test_the_search_for_a_reason_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run, wrong, _ = FAULTS["conv_hf32"]()
    path = run.save(tmp_path / "case.npz", **wrong)
    assert any(r.hints for r in compare(path).reports)
    monkeypatch.setattr("aclnn.golden.why.explain.BUDGET", -1.0)
    assert not any(r.hints for r in compare(path).reports)


@pytest.mark.parametrize(
    ("first", "last", "says"), [(32, 63, "only in columns 32 to 63"), (16, 31, "only in columns 16 to 31")]
)
def test_a_place_is_whole_where_that_is_hardly_longer(first: int, last: int, says: str, tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward", in_channels=4, out_channels=4, size=80, padding=1)
    off = run.arrays["gradInput"].copy()
    off[..., first : last + 1] += 1
    assert says in str(compare(run.save(tmp_path / "case.npz", gradInput=off)))


def test_places_are_in_plain_english(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward", batch=8, in_channels=4, out_channels=4)
    off = run.arrays["gradInput"].copy()
    off[2:5] += 1
    assert "only in batches 2 to 4" in str(compare(run.save(tmp_path / "case.npz", gradInput=off)))
    flat = planted("aclnnEluBackward", shape=(8, 9))
    off = flat.arrays["gradInput"].copy()
    off[1:3] += 1
    assert "only at 1 to 2 of axis 0" in str(compare(flat.save(tmp_path / "elu.npz", gradInput=off)))
