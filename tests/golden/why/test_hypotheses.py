"""Reasons are proposed only where an operator has what they speak of: every operator beside every hypothesis."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from aclnn import ops
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.golden.read.casefile import LoadedCase, load_case
from aclnn.golden.why import hypotheses
from aclnn.golden.why.hypotheses import Hypothesis
from aclnn.golden.why.hypotheses.model import HypothesisRow
from tests.golden.planting import planted

# Attributes under which an operator meets every hypothesis there is for it.
TALKATIVE: dict[str, dict[str, Any]] = {
    "aclnnConvolutionBackward": {"padding": 1},
    "aclnnConvolution": {"padding": 1},
    "aclnnConvTbcBackward": {"pad": 1},
    "aclnnConvTbc": {"pad": 1},
    "aclnnLstmBackward": {"bidirectional": True},
    "aclnnLSTM": {"bidirectional": True},
}
SCALES = {"alpha": 2.0, "scale": 3.0, "input_scale": 4.0}
TALKATIVE |= dict.fromkeys(("aclnnEluBackward", "aclnnElu", "aclnnInplaceElu"), SCALES)

ALWAYS = {"not-written", "float16-accumulation", "float16-arithmetic"}
ELU = {"float16", "alpha-ignored", "scale-ignored", "inputScale-ignored"} | ALWAYS
CONVOLUTION = {"hf32", "float16", "kernel-not-flipped", "transposed-weight"} | ALWAYS
PADDING = {"padding-sign", "padding-ignored"}  # of gradients alone: the size of a forward's output depends on it
LSTM = {"hf32", "float16", "gate-order", "missing-bias", "transposed-weight"} | ALWAYS
PROPOSED = {
    "aclnnEluBackward": ELU | {"is-result"},
    "aclnnElu": ELU,
    "aclnnInplaceElu": ELU,
    "aclnnConvolutionBackward": CONVOLUTION | PADDING,
    "aclnnConvolution": CONVOLUTION,
    "aclnnConvTbcBackward": CONVOLUTION | PADDING,
    "aclnnConvTbc": CONVOLUTION,
    "aclnnLstmBackward": LSTM,
    "aclnnLSTM": LSTM,
    "aclnnThnnFusedLstmCellBackward": {"float16", "gate-order"} | ALWAYS,
    "aclnnThnnFusedLstmCell": {"float16", "gate-order"} | ALWAYS,
}
OPS = [op.name for op in ops.all_ops()]
NAMES = {a.name for op in ops.all_ops() for a in op.args if len(a.name) > 1}


def loaded(op: str, folder: Path, **sizes: Any) -> LoadedCase:
    return load_case(planted(op, device=CPU, **{**TALKATIVE.get(op, {}), **sizes}).save(folder / "case.npz"))


def outputs(case: LoadedCase) -> list[str]:
    return [a.name for a in case.op.outputs if case.call[a.name] is not None]


def explained(hypothesis: Hypothesis, case: LoadedCase) -> set[str]:
    return {name for name in outputs(case) if hypothesis.way.explains(case, name)}


@pytest.mark.parametrize("op", OPS)
def test_an_operator_meets_its_hypotheses_and_no_others(op: str, tmp_path: Path) -> None:
    assert {h.key for h in hypotheses.of(loaded(op, tmp_path))} == PROPOSED[op]


@pytest.mark.parametrize("op", OPS)
def test_a_sentence_names_only_arguments_that_the_operator_has(op: str, tmp_path: Path) -> None:
    for dtype in (FLOAT32, FLOAT16, BFLOAT16):
        case = loaded(op, tmp_path, dtype=dtype)
        for hypothesis in hypotheses.of(case):
            said = " ".join((*hypothesis.says, *hypothesis.proof))
            named = set(re.findall("[A-Za-z_]+", said)) & {
                n for n in NAMES if re.search("[a-z][A-Z]|params|storage", n)
            }
            assert named <= case.op.by_name.keys(), said
            if "HF32" in said:
                assert {"cubeMathType", "params"} & case.op.by_name.keys(), said


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("op", OPS)
def test_only_sums_are_accumulated(op: str, dtype: DType, tmp_path: Path) -> None:
    case = loaded(op, tmp_path, dtype=dtype)
    found = {h.key.partition("-")[2]: explained(h, case) for h in hypotheses.of(case) if h.way.unit and "-" in h.key}
    if {"weight", "params"} & case.op.by_name.keys():
        sums = set(outputs(case))
    else:
        sums = {"gradBiasOut"} & set(outputs(case))
    assert found == {"accumulation": sums, "arithmetic": set(outputs(case)) - sums}


@pytest.mark.parametrize("row", hypotheses.TABLE, ids=lambda row: row.key)
def test_every_row_has_both_sentences_with_the_same_holes(row: HypothesisRow) -> None:
    for text in (row.says, row.proof):
        holes = [set(re.findall(r"{(\w+)}", said)) - {"whose"} for said in text]
        assert holes[0] == holes[1]
        assert text.en != text.zh


def test_every_row_is_met_by_an_operator(tmp_path: Path) -> None:
    met = set()
    for op in OPS:
        for dtype in (FLOAT32, FLOAT16):
            for asked in ({}, {"cube_math_type": 1}) if "cubeMathType" in ops.find(op).by_name else ({},):
                case = loaded(op, tmp_path, dtype=dtype, **asked)
                met |= {row for row in hypotheses.TABLE if next(row.of(case), None)}
    assert [row.key for row in hypotheses.TABLE if row not in met] == []
