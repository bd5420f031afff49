"""The two judgements: what a standard says, and what rounding can explain."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT16, FLOAT32, FLOAT64
from aclnn.base.tolerance import allowed_error
from aclnn.contract.cases import Case
from aclnn.golden.compare import compare
from aclnn.golden.judge.sound import truths
from aclnn.golden.judge.standards import STANDARDS, TWO_BASELINES
from tests.golden.planting import Planted, planted, report_of


def asks_for_something(case: Case) -> bool:
    return any(case.values[a.name] is not None and a.takes_part(case.call) for a in case.op.outputs)


CASES = [
    pytest.param(case, id=f"{op.name}-{i}-{case.note}")
    for op in ops.all_ops()
    for i, case in enumerate(ops.cases(op))
    if asks_for_something(case)
]
OPS = [op.name for op in ops.all_ops()]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_right_targets_are_sound(case: Case, tmp_path: Path) -> None:
    found = Planted(case).compare(tmp_path, "close")
    assert found.sound
    assert not any(r.hints or r.places for r in found.reports)
    assert all(r.sound for r in found.compared)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_wrong_targets_are_not_sound_and_no_hypothesis_stumbles(case: Case, tmp_path: Path) -> None:
    run = Planted(case)
    wrong = {a.name: _all_off(run.arrays[a.name]) for a in case.op.outputs if run.arrays[a.name] is not None}
    found = run.compare(tmp_path, "close", **wrong)
    for report in found.compared:
        assert report.sound == (0 in report.shape)


def _all_off(value: Any) -> Any:
    return [_all_off(v) for v in value] if isinstance(value, list) else (value + 3).astype(value.dtype)


def faulty(run: Planted, rng: np.random.Generator) -> tuple[dict[str, Any], str, tuple[int, ...]]:
    """One element of one output, off by more than the bound allows but not by much."""
    expected = [(t, r) for t, r in truths(run.op, run.case.call, run.arrays, run.given) if r is not None and r.size]
    truth, result = expected[rng.integers(len(expected))]
    index = tuple(int(rng.integers(n)) for n in result.shape)
    exact = truth.exact[index]
    allowed = allowed_error(truth.exact, truth.terms, truth.precision)[index]
    wrong = result.copy()
    wrong[index] = exact + rng.choice([-1, 1]) * allowed * rng.uniform(4, 50)
    name, _, number = truth.name.partition("[")
    if not number:
        return {name: wrong}, truth.name, index
    listed = list(run.arrays[name])
    listed[int(number[:-1])] = wrong
    return {name: listed}, truth.name, index


@pytest.mark.parametrize("op", OPS)
def test_single_faults_are_all_listed(op: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for number in range(50):
        run = planted(op, seed=number % 5, dtype=(FLOAT32, FLOAT16)[number % 2])
        outputs, output, index = faulty(run, rng)
        found = compare(run.save(tmp_path / "case.npz", **outputs), hints=number < 2)
        assert found.sound is False
        assert [(r.output, miss.index) for r, miss in found.misses] == [(output, index)]
        assert found.worst is not None
        assert (found.worst.output, found.worst.where) == (output, index)
        assert not any(r.hints for r in found.reports)
        assert found.exit_code(strict=True) == 1


@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_are_faults_too(fault: float, tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    wrong = run.arrays["gradInput"].copy()
    wrong[1, 2, 3, 4] = fault
    found = run.compare(tmp_path, "thousandth", gradInput=wrong)
    assert found.sound is False
    assert found.worst.where == (1, 2, 3, 4)
    assert report_of(found, "gradInput").measured.special_misses == 1


def test_the_standard_may_fail_what_is_sound(tmp_path: Path) -> None:
    """Tiny gradients among large terms: right as far as rounding goes, hopeless relative to themselves."""
    run = planted("aclnnConvolutionBackward", batch=4, in_channels=16, out_channels=16, size=12, padding=1)
    truth = next(t for t, _ in truths(run.op, run.case.call, run.arrays, run.given) if t.name == "gradInput")
    allowed = allowed_error(truth.exact, truth.terms, truth.precision)
    found = run.compare(tmp_path, "mere-mare", gradInput=(truth.exact + 0.9 * allowed).astype(np.float32))
    assert found.sound
    assert not found.passed
    assert found.exit_code() == 1
    assert found.exit_code(strict=True) == 0
    note = report_of(found, "gradInput").notes[0].en
    assert re.fullmatch(r"fails mere-mare: \d+ elements with \|g\| < 1e-\d; every element is within rounding", note)
    assert "right as far as rounding goes" in str(found)


def test_the_standard_may_pass_what_is_not_sound(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward", size=12)
    wrong = run.arrays["gradInput"].copy()
    wrong[0, 0, 0, 0] += 0.009
    found = run.compare(tmp_path, "mixed", gradInput=wrong)
    assert found.passed
    assert found.sound is False
    assert found.exit_code() == 0
    assert found.exit_code(strict=True) == 1
    assert "passes mixed although 1 element is beyond rounding" in str(found)


def test_hf32_is_judged_by_its_own_row(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward", cube_math_type=1)
    rows = {r.output: r.rule.row for r in run.compare(tmp_path).reports}
    assert rows == {"gradInput": "hf32", "gradWeight": "hf32", "gradBias": "float32"}
    run = planted("aclnnConvolutionBackward", cube_math_type=1, dtype=FLOAT16)
    assert {r.rule.row for r in run.compare(tmp_path).reports} == {"float16"}


@pytest.mark.parametrize("op", ["aclnnLstmBackward", "aclnnThnnFusedLstmCellBackward"])
def test_nan_for_inf_is_a_documented_boundary_of_the_recurrent_operators(op: str, tmp_path: Path) -> None:
    run = planted(op, **({"steps": 1} if op == "aclnnLstmBackward" else {}))
    grad = {"aclnnLstmBackward": "dc", "aclnnThnnFusedLstmCellBackward": "gradCOptional"}[op]
    out = {"aclnnLstmBackward": "dcPrevOut", "aclnnThnnFusedLstmCellBackward": "gradCxOut"}[op]
    run.given[grad] = run.arrays[grad] = run.given[grad].copy()
    run.given[grad].flat[0] = np.inf
    results = dict(zip((a.name for a in run.op.outputs), run.again(), strict=True))
    assert np.isinf(results[out]).any()
    nan = np.where(np.isinf(results[out]), np.float32(np.nan), results[out])
    report = report_of(run.compare(tmp_path, **{**results, out: nan}), out)
    assert report.status == "pass"
    assert report.sound
    assert report.measured.documented == np.isinf(results[out]).sum()
    assert "documented boundary" in report.notes[0].en


def test_nan_for_inf_is_a_fault_elsewhere(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    run.given["gradOutput"] = run.arrays["gradOutput"] = run.given["gradOutput"].copy()
    run.given["gradOutput"].flat[0] = np.inf
    right = run.again()
    assert run.compare(tmp_path, gradInput=right).sound
    assert run.compare(tmp_path, gradInput=np.where(np.isinf(right), np.float32(np.nan), right)).sound is False


def test_nan_in_an_input_belongs_in_the_output(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(2,))
    run.given["gradOutput"] = run.arrays["gradOutput"] = np.full(2, np.nan, np.float32)
    found = run.compare(tmp_path, gradInput=np.full(2, np.nan, np.float32))
    assert found.passed
    assert found.sound


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 4)], ids=str)
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("standard", [name for name in STANDARDS if name != TWO_BASELINES])
def test_nothing_but_nan_or_inf_is_a_mismatch(
    standard: str, fault: float, shape: tuple[int, ...], tmp_path: Path
) -> None:
    run = planted("aclnnEluBackward", shape=shape)
    wrong = np.full(shape, fault, np.float32)
    by_case = run.compare(tmp_path, standard, gradInput=wrong)
    for found in (by_case, compare(wrong, np.ones(shape, np.float32), standard=standard)):
        assert [r.status for r in found.reports] == ["fail"]
        assert found.sound is False
        assert (found.exit_code(), found.exit_code(strict=True)) == (1, 1)
        assert ("every element of the target is NaN" in str(found)) == bool(np.isnan(fault))
        assert "repair the input" not in str(found)


@pytest.mark.parametrize("op", OPS)
def test_outputs_of_nan_alone_are_mismatches_of_every_operator(op: str, tmp_path: Path) -> None:
    run = planted(op)
    found = run.compare(tmp_path, **{a.name: _all_nan(run.arrays[a.name]) for a in run.op.outputs})
    assert found.reports
    assert {(r.status, r.sound) for r in found.reports} == {("fail", False)}
    assert not any(r.hints for r in found.reports)
    assert found.exit_code() == 1


def _all_nan(value: Any) -> Any:
    return (
        [_all_nan(v) for v in value] if isinstance(value, list) else value is not None and np.full_like(value, np.nan)
    )


@pytest.mark.parametrize("standard", [name for name in STANDARDS if name != TWO_BASELINES])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_is_wrong_where_the_golden_is_none(standard: str, value: float) -> None:
    golden = np.linspace(-3, 3, 100, dtype=np.float32)
    assert compare(np.full(100, value, np.float32), golden, standard=standard).exit_code() == 1
    constant = np.full(100, value, np.float32)
    assert compare(constant, constant.copy(), standard=standard).exit_code() == 0


def test_a_golden_of_nan_alone_cannot_be_compared_with(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    nan, ones = np.full((3, 4), np.nan, np.float32), np.ones((3, 4), np.float32)
    path = run.save(tmp_path / "case.npz")
    for found in (compare(ones, nan), compare(nan, nan), compare(path, nan)):
        assert found.exit_code() == 2
        assert not found.passed
        assert found.errors[0].why.en == "every element of the golden is NaN"
        assert "repair the input" in str(found)
    assert compare(path, nan).reports[0].sound
    found = compare(run.save(tmp_path / "wrong.npz", gradInput=nan), nan)
    assert (found.exit_code(), found.exit_code(strict=True)) == (2, 1)


def test_a_golden_that_agrees_costs_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = planted("aclnnEluBackward", shape=(10, 20))
    off = run.arrays["gradInput"] * 2
    path = run.save(tmp_path / "case.npz", gradInput=off)
    assert compare(path, off, check_golden=True).sound is False  # both are wrong
    computed = []
    real = sys.modules["aclnn.golden.compare"].truths
    monkeypatch.setattr("aclnn.golden.compare.truths", lambda *given: computed.append(1) or real(*given))
    assert compare(path, off).passed
    assert computed == []
    assert not compare(path, run.arrays["gradInput"]).passed
    assert computed == [1]


def test_tolerances_of_ones_own(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    off = run.arrays["gradWeight"] * np.float32(1.01)
    path = run.save(tmp_path / "case.npz", gradWeight=off)
    assert not compare(path).passed
    assert compare(path, rtol=0.05, cap=1e3).passed
    found = compare(path, rtol={"gradWeight": 0.05}, cap={"gradWeight": 1e3})
    assert found.passed
    assert "float32 (gradWeight): rtol 0.05, atol 1.53e-05, cap 1e+03" in str(found)
    assert not compare(path, rtol={"gradInput": 0.05}).passed
    with pytest.raises(aclnn.AclnnError, match="belong to the standard mixed; the standard is close"):
        compare(path, standard="close", rtol=1.0)
    with pytest.raises(aclnn.AclnnError, match="rtol is -1; it must be a number that is not negative"):
        compare(path, rtol=-1)


def test_a_golden_of_nan_alone_is_right_where_the_inputs_ask_for_it(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(2,))
    nan = np.full(2, np.nan, np.float32)
    run.given["gradOutput"] = run.arrays["gradOutput"] = nan
    assert compare(run.save(tmp_path / "case.npz", gradInput=nan), nan).exit_code(strict=True) == 0
    assert compare(run.save(tmp_path / "case.npz", gradInput=np.ones_like(nan)), nan).exit_code() == 1


def test_a_given_golden_decides_the_verdict_and_not_the_soundness(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(10, 20))
    path = run.save(tmp_path / "case.npz")
    off = run.arrays["gradInput"] * 2
    found = compare(path, off)
    assert not found.passed
    assert found.sound
    assert any("the golden that was given is itself beyond rounding" in n.en for n in found.reports[0].notes)
    assert compare(path, {"gradInput": run.arrays["gradInput"]}).passed


def test_arrays_and_operators_at_hand() -> None:
    run = planted("aclnnConvolutionBackward")
    results = run.again()
    found = compare(results, op="convolution_backward", arguments=run.inputs())
    assert found.passed
    assert found.sound
    found = compare({"gradInput": results[0] * 1.5}, op="aclnnConvolutionBackward", arguments=run.inputs())
    assert not found.passed
    assert [r.output for r in found.compared] == ["gradInput"]
    assert {r.output for r in found.missing} == {"gradWeight", "gradBias"}
    with pytest.raises(aclnn.AclnnError, match="has 2 parts; convolution_backward has 3 outputs"):
        compare(results[:2], op="convolution_backward", arguments=run.inputs())
    with pytest.raises(aclnn.AclnnError, match="the golden has 2 parts"):
        compare(results, golden=results[:2], op="convolution_backward", arguments=run.inputs())


def test_one_array_is_the_only_output() -> None:
    run = planted("aclnnEluBackward")
    assert compare(run.arrays["gradInput"], op="elu_backward", arguments=run.inputs()).sound


@pytest.mark.torch
def test_torch_tensors() -> None:
    import torch

    x = torch.linspace(-1, 1, 50, dtype=torch.bfloat16)
    found = compare(x, x.clone(), dtype=torch.bfloat16)
    assert found.passed
    assert found.reports[0].dtype == "bfloat16"


def test_plain_arrays_within_the_tightest_bound_are_sound() -> None:
    golden = np.linspace(-3, 3, 1001, dtype=np.float32)
    assert compare(np.nextafter(golden, np.float32(9)), golden).sound
    found = compare(golden * np.float32(1.0001), golden)
    assert found.passed
    assert found.sound is None
    assert found.exit_code(strict=True) == 2
    assert "that takes the operator and its inputs to tell" in str(found)


@pytest.mark.parametrize(
    ("target", "golden", "options", "sentence"),
    [
        (
            np.ones(3, np.float32),
            np.ones(4, np.float32),
            {},
            r"has shape \[3\] but its golden \[4\]; the two must be equal",
        ),
        (np.ones(3, np.int32), np.ones(3, np.int32), {}, "only floating-point results are compared"),
        (np.ones(3, np.float32), None, {}, "does not say which operator it is of; name the operator, or give a golden"),
        (np.ones(3, "U3"), np.ones(3), {}, "which no aclDataType stands for"),
        (np.ones(3, np.float32), np.ones(3, np.float32), {"dtype": "float7"}, "there is no dtype 'float7'"),
        (
            {"a": np.ones(3)},
            {"b": np.ones(3), "c": np.ones(3)},
            {},
            "target has a, the golden has b, c; no name is in both",
        ),
        (3, np.ones(3), {}, "target is an int"),
    ],
)
def test_what_cannot_be_compared(target: Any, golden: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(aclnn.AclnnError, match=sentence):
        compare(target, golden, **options)


def test_the_golden_says_which_arrays_must_be_there() -> None:
    a = np.ones(3, np.float32)
    found = compare({"x": a, "y": a}, {"x": a})
    assert found.passed
    assert [(r.output, r.status) for r in found.reports] == [("x", "pass"), ("y", "skipped")]
    found = compare({"x": a, "y": a}, {"x": a, "z": a})
    assert found.exit_code() == 1
    assert [(r.output, r.status) for r in found.reports] == [("z", "fail"), ("x", "pass"), ("y", "skipped")]
    assert compare({"x": a, "y": a}, {"x": a, "z": a}, only=["x"]).exit_code() == 0


def test_empty_outputs_pass(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(0, 3))
    found = run.compare(tmp_path)
    assert found.passed
    assert found.sound
    assert found.worst is None


def test_float64(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", dtype=FLOAT64, device=CPU)
    assert run.compare(tmp_path).passed
    assert run.compare(tmp_path, "close").sound
    wrong = run.arrays["gradInput"] * (1 + 1e-12)
    assert run.compare(tmp_path, "close", gradInput=wrong).sound is False


def test_a_signalling_nan_is_a_mismatch_without_a_warning() -> None:
    """Widening it sets the invalid flag, of which numpy warns; warnings are errors here."""
    run = planted("aclnnEluBackward")
    wrong = np.array(run.arrays["gradInput"])
    wrong.reshape(-1).view(np.uint32)[0] = 0x7FA00000
    arguments = {a.name: run.arrays.get(a.name, run.case.values[a.name]) for a in run.op.inputs}
    found = compare(wrong, op=run.op.name, arguments=arguments)
    assert found.sound is False
