"""Outputs that are not there, or should not be: never a pass without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.golden.compare import compare
from tests.golden.planting import planted, report_of, with_arrays
from tests.golden.test_command import aclnn_compare

SEVERAL = [op.name for op in ops.all_ops() if len(op.outputs) > 1]


@pytest.mark.parametrize("op", SEVERAL)
def test_a_missing_output_fails_whichever_it_is(op: str, tmp_path: Path) -> None:
    run = planted(op)
    for arg in (a for a in run.op.outputs if run.arrays[a.name] is not None):
        missing = [None, *run.arrays[arg.name][1:]] if arg.kind == "tensor_list" else None
        found = run.compare(tmp_path, **{arg.name: missing})
        name = f"{arg.name}[0]" if arg.kind == "tensor_list" else arg.name
        report = report_of(found, name)
        assert (report.status, report.sound, report.why.en) == ("fail", False, "it is not in the target")
        assert [r.output for r in found.reports if r.status != "pass"] == [name]
        assert not found.passed
        assert found.sound is False
        assert (found.exit_code(), found.exit_code(strict=True)) == (1, 1)
        assert str(found).endswith(f"next: add {name} to the target, or name what to compare with --only")


@pytest.mark.parametrize("strict", [(), ("--strict",)])
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_the_command_fails_too_unless_the_outputs_are_named(strict: Any, suffix: str, tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    path = run.save(tmp_path / f"case{suffix}", gradWeight=None, gradBias=None)
    code, text = aclnn_compare("-tp", path, *strict)
    assert code == 1
    assert "verdict (mixed): FAIL    sound: no" in text
    assert text.count("fail: it is not in the target") == 2
    code, text = aclnn_compare("-tp", path, "--only", "gradInput", *strict)
    assert code == 0
    assert "gradWeight" not in text
    assert aclnn_compare("-tp", path, "--only", "gradInput", "--only", "gradBias", *strict)[0] == 1


def test_only_takes_lists_whole_or_by_element_and_refuses_other_names(tmp_path: Path) -> None:
    run = planted("aclnnLstmBackward")
    path = run.save(tmp_path / "case.npz")
    whole = compare(path, only="dparamsOut")
    assert {r.output for r in whole.reports} == {f"dparamsOut[{i}]" for i in range(len(run.arrays["dparamsOut"]))}
    assert [r.output for r in compare(path, only=["dparamsOut[2]"]).reports] == ["dparamsOut[2]"]
    for wrong in (["dparamsOut[99]"], ["gradInput"]):
        with pytest.raises(aclnn.AclnnError, match=r"there is no output '.*'; its outputs are dxOut, dhPrevOut"):
            compare(path, only=wrong)
    with pytest.raises(aclnn.AclnnError, match="no output is named"):
        compare(path, only=[])


def test_what_a_caller_has_in_part_fails_unless_it_is_named() -> None:
    run = planted("aclnnConvolutionBackward")
    results = run.again()
    asked: dict[str, Any] = {"op": "convolution_backward", "arguments": run.inputs()}
    assert compare({"gradInput": results[0]}, **asked).exit_code() == 1
    assert compare((results[0], None, None), **asked).exit_code() == 1
    assert compare({"gradInput": results[0]}, **asked, only=["gradInput"]).exit_code(strict=True) == 0
    with pytest.raises(
        aclnn.AclnnError, match=r"the target is one array; convolution_backward has 3 outputs: gradInput"
    ):
        compare(results[0], **asked)
    with pytest.raises(aclnn.AclnnError, match="the golden is one array; convolution_backward has 3 outputs"):
        compare(results, results[0], **asked)


def test_a_golden_in_part_is_completed_by_the_reference(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    golden = {"gradInput": run.arrays["gradInput"]}
    found = compare(run.save(tmp_path / "case.npz"), golden)
    assert found.exit_code(strict=True) == 0
    report = report_of(found, "gradWeight")
    assert (report.status, report.golden) == ("pass", "computed")
    assert report.notes[0].en == "it is not in the golden: it was computed"
    found = compare(run.save(tmp_path / "case.npz", gradWeight=run.arrays["gradWeight"] + 1), golden)
    assert [r.output for r in found.reports if r.status == "fail"] == ["gradWeight"]
    assert compare(run.save(tmp_path / "case.npz", gradInput=None), golden | {"gradWeight": run.arrays["gradWeight"]})
    found = compare(run.save(tmp_path / "case.npz", gradBias=None), golden)
    assert [r.output for r in found.missing] == ["gradBias"]


def test_inputs_in_a_golden_case_need_not_be_in_the_target(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    golden = run.save(tmp_path / "golden.npz")
    outputs = {a.name: run.arrays[a.name] for a in run.op.outputs}
    assert compare(outputs, golden).exit_code() == 0
    del outputs["gradBias"]
    assert [r.output for r in compare(outputs, golden).missing] == ["gradBias"]


def test_an_output_that_the_call_does_not_ask_for_is_skipped_and_said(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward", output_mask=(True, False, True))
    path = with_arrays(run.save(tmp_path / "case.npz"), gradWeight=np.full((8, 4, 3, 3), np.nan, np.float32))
    found = compare(path)
    report = report_of(found, "gradWeight")
    assert (report.status, report.why.en) == ("skipped", "the call does not ask for it")
    assert found.exit_code(strict=True) == 0
    assert "skipped: the call does not ask for it" in str(found)


def test_what_an_operator_has_not_and_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    for changed, sentence in (
        ({"gradBeta": np.ones(3, np.float32)}, "has a tensor 'gradBeta', which aclnnConvolutionBackward has not"),
        ({"gradBias": np.ones(99, np.float32)}, "gradBias has shape"),
        ({"gradBias": np.ones(6, np.float16)}, r"gradBias has dtype float16"),
    ):
        with pytest.raises(aclnn.AclnnError, match=sentence):
            compare(with_arrays(run.save(tmp_path / "case.npz"), **changed))
