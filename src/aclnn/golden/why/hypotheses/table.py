"""Every way to be wrong that is known, the sharpest first: its key, its sentence, its proof, what is recomputed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aclnn.base.rounding import ALLOW_DOWN_PRECISION, KEEP, USE_FP16, USE_HF32
from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses import attributes, gates, parameters, roundings, stored, weights
from aclnn.golden.why.hypotheses.model import HypothesisRow, Recomputed

_CUBE, _ELU = frozenset({"cubeMathType"}), frozenset({"alpha"})
_GATES = frozenset({"params", "storage", "inputGates"})
_WEIGHT, _PADDING, _PARAMS = frozenset({"weight"}), frozenset({"padding", "pad"}), frozenset({"params"})


def _zeros(case: LoadedCase) -> Iterator[Recomputed]:
    yield Recomputed(after=lambda case, output, values: np.zeros_like(values))


TABLE = (
    HypothesisRow(
        "hf32",
        Text(
            "the inputs were rounded to HF32, as cubeMathType 1 or 3 asks for; cubeMathType is {asked}",
            "输入被舍入为HF32（cubeMathType为1或3时的行为），而cubeMathType是{asked}",
        ),
        Text("with HF32 inputs", "以HF32输入重算"),
        roundings.cube(USE_HF32, ALLOW_DOWN_PRECISION),
        _CUBE,
    ),
    HypothesisRow(
        "float16",
        Text(
            "the inputs were rounded to float16, as cubeMathType 2 asks for; cubeMathType is {asked}",
            "输入被舍入为float16（cubeMathType为2时的行为），而cubeMathType是{asked}",
        ),
        Text("with float16 inputs", "以float16输入重算"),
        roundings.cube(USE_FP16),
        _CUBE,
    ),
    HypothesisRow(
        "float32",
        Text("the inputs were not rounded, though cubeMathType is {asked}", "cubeMathType是{asked}，但输入没有被舍入"),
        Text("with inputs as they are", "以未舍入的输入重算"),
        roundings.cube(KEEP),
        _CUBE,
    ),
    HypothesisRow(
        "float16",
        Text("the inputs were rounded to float16", "输入被舍入为float16"),
        Text("with float16 inputs", "以float16输入重算"),
        roundings.inputs_in_float16,
        _ELU | _GATES,
    ),
    HypothesisRow(
        "is-result",
        Text(
            "selfOrResult was taken for the forward's {taken}; isResult is {asked}",
            "selfOrResult被当作正向的{taken}，而isResult是{asked}",
        ),
        Text("with isResult {other}", "以isResult为{other}重算"),
        attributes.the_other_flag,
        _ELU,
    ),
    HypothesisRow(
        "{name}-ignored",
        Text("{name} was ignored", "忽略了{name}"),
        Text("with {name} 1", "以{name}为1重算"),
        attributes.without_a_scale,
        _ELU,
    ),
    HypothesisRow(
        "kernel-not-flipped",
        Text(
            "the kernel was taken in the wrong direction (not flipped, or flipped once too often)",
            "卷积核方向相反（未翻转或多翻转了一次）",
        ),
        Text("with the kernel the other way round", "以方向相反的卷积核重算"),
        weights.turned_round,
        _WEIGHT,
    ),
    HypothesisRow(
        "transposed-weight",
        Text("input and output channels of weight are exchanged", "weight的输入通道与输出通道互换"),
        Text("with weight transposed", "以转置的weight重算"),
        weights.transposed,
        _WEIGHT,
    ),
    HypothesisRow(
        "padding-sign",
        Text("{name} was added where it must be subtracted", "{name}的符号相反"),
        Text("with {name} of the other sign", "以符号相反的{name}重算"),
        attributes.padding_times(-1),
        _PADDING,
    ),
    HypothesisRow(
        "padding-ignored",
        Text("{name} was ignored", "忽略了{name}"),
        Text("with {name} 0", "以{name}为0重算"),
        attributes.padding_times(0),
        _PADDING,
    ),
    HypothesisRow(
        "gate-order",
        Text(
            "the gates in {where} are in the order i, g, f, o; they must be in the order i, f, g, o",
            "{where}中门的顺序是i、g、f、o，应为i、f、g、o",
        ),
        Text("with the gates in the order i, g, f, o", "以i、g、f、o的顺序重算"),
        gates.in_the_other_order,
        _GATES,
    ),
    HypothesisRow(
        "gate-order",
        Text("the lists g and f are exchanged", "列表g与f互换"),
        Text("with g and f exchanged", "以互换的g与f重算"),
        gates.lists_exchanged,
        _GATES,
    ),
    HypothesisRow(
        "missing-bias",
        Text("the bias of the {direction} direction is missing", "缺少{direction}方向的偏置"),
        Text("without the bias of the {direction} direction", "去掉{direction}方向的偏置重算"),
        parameters.without_bias,
        _PARAMS,
    ),
    HypothesisRow(
        "transposed-weight",
        Text("{what} {whose}is {done} transposed", "{what}按转置{done}"),
        Text("with {what} transposed", "以转置的{what}重算"),
        parameters.transposed,
        _PARAMS,
    ),
    HypothesisRow(
        "not-written",
        Text(
            "the output is zero everywhere: it was never written, or its terms were left out",
            "输出全为0：未写出或漏算",
        ),
        Text("with zeros", "以全0代替"),
        _zeros,
    ),
    HypothesisRow(
        "hf32",
        Text("the matrix products were made in HF32", "矩阵乘以HF32进行"),
        Text("with the roundings of HF32", "按HF32的舍入误差"),
        roundings.matmul_in_hf32,
        _PARAMS,
    ),
    HypothesisRow(
        "{narrow}-partial-sums",
        Text(
            "the sums were added up in {narrow} instead of float32, {between}",
            "累加使用了{narrow}而不是float32，{between}进行",
        ),
        Text("with partial sums stored in {narrow}", "以{narrow}保存部分和重算"),
        stored.between_parts,
        _WEIGHT,
    ),
    HypothesisRow(
        "{narrow}-accumulation",
        Text("the sums were accumulated in {narrow} instead of float32", "累加使用了{narrow}而不是float32"),
        Text("with the roundings of {narrow} accumulation", "按{narrow}累加的舍入误差"),
        roundings.narrow(sums=True),
    ),
    HypothesisRow(
        "{narrow}-arithmetic",
        Text("each element was computed in {narrow} instead of float32", "逐元素计算使用了{narrow}而不是float32"),
        Text("with the roundings of {narrow} arithmetic", "按{narrow}计算的舍入误差"),
        roundings.narrow(sums=False),
    ),
)
