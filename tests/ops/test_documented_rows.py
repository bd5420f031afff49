"""Every row of the documented rule tables, typed by hand: a rule that is lost, moved or given another code shows here.

`tests/every/test_rules.py` asks each rule of a contract for its failing case; it cannot miss a rule that is not there.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import aclnn
from aclnn.base.device import CPU, find
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64, DType, by_name
from aclnn.base.format import Format
from aclnn.base.scalar import scalar
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.cases import Case, fill
from aclnn.ops.conv_tbc import conv_tbc_backward_case
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.elu import elu_backward_case
from aclnn.ops.lstm import SAVED, lstm_backward_case
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_backward_case
from tests.harness import call

NULL, INVALID = 161001, 161002
FLOAT8 = by_name("float8_e4m3fn")
INT32 = by_name("int32")
assert FLOAT8 is not None
assert INT32 is not None

Row = tuple[Case, int, str]


def f32(*shape: int, tag: Format = Format.ND) -> TensorSpec:
    return dense(FLOAT32, shape, tag)


def as_type(case: Case, dtype: DType, *names: str) -> dict[str, Any]:
    """The tensors of these names, lists too, in another dtype."""
    changed: dict[str, Any] = {}
    for name in names:
        value = case.values[name]
        one = isinstance(value, TensorSpec)
        changed[name] = value._replace(dtype=dtype) if one else tuple(v._replace(dtype=dtype) for v in value)
    return changed


def tagged(case: Case, tag: Format, *names: str) -> dict[str, Any]:
    return {name: case.values[name]._replace(format=tag) for name in names}


def nulls(case: Case, *names: str) -> list[Row]:
    return [(case.but(**{name: None}), NULL, f"{name} is null") for name in names]


def each_tensor(case: Case) -> list[Row]:
    """What is documented of every tensor, and of the first of every list: dtype, rank, format, view."""
    rows: list[Row] = [(case.but(device=find("310B")), INVALID, "product Atlas 200I/500 A2 does not support")]
    for arg in case.op.tensors:
        value = case.values[arg.name]
        is_one = isinstance(value, TensorSpec)
        spec, name = (value, arg.name) if is_one else (value[0], f"{arg.name}[0]")
        reach = f"elements 1 to {spec.size} of a storage of {spec.size}"
        wrong = [
            (spec._replace(dtype=FLOAT8), f"{name} has dtype float8_e4m3fn; on Atlas A2 it must be"),
            (dense(spec.dtype, (1,) * 9, spec.format), f"{name} has rank 9 (shape"),
            (spec._replace(format=Format.NHWC), f"{name} has format NHWC; with rank {spec.rank} it must be"),
            (spec._replace(offset=1), f"the view of {name} touches {reach}"),
            (spec._replace(strides=(0,) * spec.rank), f"{name} has shape {list(spec.shape)} and strides [0"),
        ]
        elementwise, read = case.op.family == "Elu", not arg.out
        kept = [w for i, w in enumerate(wrong) if not (i == 2 and elementwise) and not (i == 4 and read)]
        rows += [(case.but(**{arg.name: bad if is_one else (bad, *value[1:])}), INVALID, says) for bad, says in kept]
    return rows


def elu() -> list[Row]:
    good = elu_backward_case((2, 3), is_result=True)
    doubles = as_type(good, FLOAT64, "gradOutput", "selfOrResult", "gradInput")
    brain = as_type(good, BFLOAT16, "gradOutput", "selfOrResult", "gradInput")
    return [
        *nulls(good, "gradOutput", "alpha", "scale", "inputScale", "selfOrResult", "gradInput"),
        *each_tensor(good),
        (good.but(**doubles), INVALID, "gradOutput has dtype float64; on Atlas A2"),
        (good.but(device=find("310P"), **brain), INVALID, "gradOutput has dtype bfloat16; on Atlas inference"),
        (good.but(device=find("910"), **brain), INVALID, "gradOutput has dtype bfloat16; on Atlas training"),
        (good.but(**as_type(good, FLOAT16, "selfOrResult")), INVALID, "selfOrResult has dtype float16 but gradOutput"),
        *(
            (good.but(**{n: scalar(1j)}), INVALID, f"{n} has dtype complex128")
            for n in ("alpha", "scale", "inputScale")
        ),
        (good.but(**as_type(good, FLOAT64, "gradInput")), INVALID, "gradInput has dtype float64"),
        (good.but(selfOrResult=f32(3, 2)), INVALID, "selfOrResult has shape [3, 2] but gradOutput has shape [2, 3]"),
        (good.but(gradInput=f32(6)), INVALID, "gradInput has shape [6] but gradOutput has shape [2, 3]"),
        (good.but(alpha=scalar(-0.5)), INVALID, "alpha is -0.5; it must be ≥ 0 when isResult"),
    ]


def convolution() -> list[Row]:
    good = convolution_backward_case(size=4)
    three = convolution_backward_case(3, size=3)
    line = convolution_backward_case(1, size=4)
    turned = convolution_backward_case(size=3, stride=2, transposed=True)
    brain = convolution_backward_case(size=4, dtype=BFLOAT16)
    tensors = ("gradOutput", "input", "weight", "gradInput", "gradWeight")
    return [
        *nulls(good, "gradOutput", "input", "weight", "stride", "padding", "dilation", "outputPadding", "outputMask"),
        *nulls(good, "biasSizes", "gradInput", "gradWeight", "gradBias"),
        (good.but(device=find("950")), INVALID, "product Ascend 950 does not support"),
        *each_tensor(good),
        (good.but(outputMask=(True, True)), INVALID, "outputMask has 2 elements but must have 3"),
        (good.but(**as_type(good, FLOAT64, "gradWeight")), INVALID, "gradWeight has dtype float64"),
        (good.but(**as_type(good, FLOAT16, "gradInput")), INVALID, "gradInput has dtype float16 but input"),
        (good.but(**as_type(good, FLOAT16, "gradBias")), INVALID, "gradBias has dtype float16 but gradOutput"),
        (good.but(input=f32(2, 4, 4, tag=Format.NCL)), INVALID, "gradOutput has rank 4 but input has rank 3"),
        (good.but(weight=f32(6, 4, 3, tag=Format.NCL)), INVALID, "weight has rank 3 but input has rank 4"),
        (good.but(gradInput=f32(2, 4, 4, tag=Format.NCL)), INVALID, "gradInput has rank 3 but input has rank 4"),
        (good.but(gradWeight=f32(6, 4, 3, tag=Format.NCL)), INVALID, "gradWeight has rank 3 but weight has rank 4"),
        *((good.but(**{n: f32(6, 4)}), INVALID, f"{n} has rank 2 (shape") for n in tensors),
        (good.but(gradBias=f32(6, 1)), INVALID, "gradBias has rank 2"),
        (good.but(**tagged(good, Format.ND, *tensors)), INVALID, "gradOutput has format ND; with rank 4"),
        (good.but(**tagged(good, Format.NHWC, *tensors)), INVALID, "gradOutput has format NHWC"),
        (line.but(**tagged(line, Format.NCHW, *tensors)), INVALID, "gradOutput has format NCHW; with rank 3"),
        (three.but(**tagged(three, Format.NDHWC, *tensors)), INVALID, "gradOutput has format NDHWC; with rank 5"),
        (line.but(**tagged(line, Format.ND, "gradOutput")), INVALID, "gradOutput has format ND but input has format"),
        (line.but(**tagged(line, Format.ND, "gradInput")), INVALID, "gradInput has format ND but input has format"),
        (line.but(**tagged(line, Format.ND, "gradWeight")), INVALID, "gradWeight has format ND but weight"),
        (good.but(**tagged(good, Format.NHWC, "gradBias")), INVALID, "gradBias has format NHWC"),
        (good.but(stride=(0, 1)), INVALID, "stride is [0, 1]; each element must be ≥ 1"),
        (good.but(padding=(0, -1)), INVALID, "padding is [0, -1]; each element must be ≥ 0"),
        (good.but(dilation=(1, 0)), INVALID, "dilation is [1, 0]; each element must be ≥ 1"),
        (good.but(groups=0), INVALID, "groups is 0; it must be ≥ 1"),
        (good.but(groups=65536), INVALID, "groups is 65536; it must be 1..65535"),
        *((good.but(**{n: (1,)}), INVALID, f"{n} has 1 element but must have 2") for n in ("stride", "dilation")),
        (good.but(outputPadding=(0,)), INVALID, "outputPadding has 1 element but must have 2"),
        (good.but(padding=(0, 0, 0)), INVALID, "padding has 3 elements but must have 2 or 4"),
        (line.but(padding=(0, 0)), INVALID, "padding has 2 elements but must have 1"),
        (three.but(padding=(0,) * 6), INVALID, "padding has 6 elements but must have 3"),
        (good.but(outputPadding=(0, 1)), INVALID, "outputPadding is [0, 1]; each element must be 0 when not"),
        (turned.but(outputPadding=(0, 2)), INVALID, "outputPadding is [0, 2] but stride is [2, 2]"),
        (turned.but(outputPadding=(-1, 0)), INVALID, "outputPadding is [-1, 0] but stride is [2, 2]"),
        (good.but(cubeMathType=4), INVALID, "cubeMathType is 4; it must be 0, 1, 2 or 3"),
        (good.but(cubeMathType=-1), INVALID, "cubeMathType is -1"),
        (brain.but(cubeMathType=2), INVALID, "cubeMathType is 2; it must be 0 or 1"),
        (brain.but(cubeMathType=3), INVALID, "cubeMathType is 3; it must be 0 or 1"),
        (good.but(input=f32(2, 5, 4, 4, tag=Format.NCHW)), INVALID, "input.shape[1] is 5 but weight.shape[1] × groups"),
        (turned.but(input=f32(2, 5, 3, 3, tag=Format.NCHW)), INVALID, "input.shape[1] is 5 but weight.shape[0] is 4"),
        (
            good.but(gradOutput=f32(2, 7, 2, 2, tag=Format.NCHW)),
            INVALID,
            "gradOutput.shape[1] is 7 but weight.shape[0]",
        ),
        (
            turned.but(gradOutput=f32(2, 7, 7, 7, tag=Format.NCHW)),
            INVALID,
            "gradOutput.shape[1] is 7 but weight.shape[1]",
        ),
        (good.but(groups=4), INVALID, "weight.shape[0] is 6, which groups = 4 does not divide"),
        (good.but(biasSizes=(7,)), INVALID, "biasSizes[0] is 7 but weight.shape[0] is 6"),
        (turned.but(biasSizes=(7,)), INVALID, "biasSizes[0] is 7 but weight.shape[1] × groups is 6"),
        (good.but(biasSizes=(6, 1)), INVALID, "biasSizes has 2 elements but must have 1"),
        (good.but(gradOutput=f32(3, 6, 2, 2, tag=Format.NCHW)), INVALID, "gradOutput.shape[0] is 3 but input.shape[0]"),
        (
            good.but(gradOutput=f32(2, 6, 2, 3, tag=Format.NCHW)),
            INVALID,
            "gradOutput.shape[2:] is [2, 3] but the output",
        ),
        (turned.but(gradOutput=f32(2, 6, 7, 8, tag=Format.NCHW)), INVALID, "gradOutput.shape[2:] is [7, 8] but the"),
        (good.but(gradInput=f32(2, 4, 4, 5, tag=Format.NCHW)), INVALID, "gradInput has shape [2, 4, 4, 5] but input"),
        (
            good.but(gradWeight=f32(6, 4, 3, 4, tag=Format.NCHW)),
            INVALID,
            "gradWeight has shape [6, 4, 3, 4] but weight",
        ),
        (good.but(gradBias=f32(7)), INVALID, "gradBias has shape [7] but must have shape [6]"),
        *_convolution_limits(),
        *_convolution_empties(),
    ]


def _convolution_limits() -> list[Row]:
    make, far = convolution_backward_case, 10**6 + 1
    deep = partial(make, 3, size=1, kernel=(2, 1, 1), transposed=True)
    return [
        (make(1, size=256, kernel=256), INVALID, "weight.shape[2:] is [256]"),
        (make(3, size=3, kernel=1, stride=(1, 64, 1)), INVALID, "stride (H, W) is [64, 1]"),
        (make(1, size=2, stride=64, transposed=True), INVALID, "stride is [64]"),
        (make(1, size=2, padding=256), INVALID, "padding is [256]"),
        (make(3, size=1, kernel=1, padding=(0, 0, 256)), INVALID, "padding (H, W) is [0, 256]"),
        (make(1, size=3, kernel=1, dilation=256), INVALID, "dilation is [256]; each element must be 1..255"),
        (make(3, size=1, kernel=1, dilation=(256, 1, 1)), INVALID, "dilation is [256, 1, 1]"),
        (make(1, size=2, dilation=256, transposed=True), INVALID, "dilation is [256]"),
        (deep(stride=(far, 1, 1)), INVALID, f"stride[0] is {far}; it must be ≤ 1000000"),
        (deep(padding=(far, 0, 0), dilation=(2 * far, 1, 1)), INVALID, f"padding[0] is {far}; it must be"),
        (deep(padding=(far // 2, 0, 0), dilation=(far, 1, 1)), INVALID, f"dilation[0] is {far}; it must be"),
    ]


def _convolution_empties() -> list[Row]:
    make = convolution_backward_case
    return [
        (make(size=4, out_channels=0), INVALID, "weight.shape[0] is 0"),
        (make(size=4, in_channels=0, transposed=True), INVALID, "weight.shape[0] is 0"),
        (
            make(size=4, out_channels=0, transposed=True),
            INVALID,
            "weight.shape is [4, 0, 3, 3]; each element must be ≥ 1",
        ),
        (make(size=0, padding=2), INVALID, "input.shape is [2, 4, 0, 0]; each element must be ≥ 1"),
        (make(size=4, kernel=0), INVALID, "weight.shape is [6, 4, 0, 0]; each element must be ≥ 1"),
        (make(size=2), INVALID, "gradOutput.shape is [2, 6, 0, 0]; each element must be ≥ 1"),
        (make(batch=0, size=2), INVALID, "the padded input size minus the dilated kernel size"),
    ]


def conv_tbc() -> list[Row]:
    make = conv_tbc_backward_case
    good = make(time=5)
    half, brain = make(time=5, dtype=FLOAT16), make(time=5, dtype=BFLOAT16)
    named = ("self", "input", "weight", "bias", "gradInput", "gradWeight", "gradBias")
    return [
        *nulls(good, *named),
        *each_tensor(good),
        *((good.but(**tagged(good, Format.NCHW, n)), INVALID, f"{n} has format NCHW") for n in named),
        *((good.but(**as_type(good, FLOAT16, n)), INVALID, f"{n} has dtype float16 but self") for n in named[1:4]),
        (good.but(**as_type(good, FLOAT16, "gradInput")), INVALID, "gradInput has dtype float16 but input"),
        (good.but(**as_type(good, FLOAT16, "gradWeight")), INVALID, "gradWeight has dtype float16 but weight"),
        (good.but(**as_type(good, FLOAT16, "gradBias")), INVALID, "gradBias has dtype float16 but bias"),
        *((good.but(**{n: f32(3, 2)}), INVALID, f"{n} has rank 2") for n in ("self", "input", "weight", "bias")),
        (good.but(input=f32(5, 2, 9)), INVALID, "input.shape[2] is 9 but weight.shape[1] is 3"),
        (good.but(bias=f32(9)), INVALID, "bias.shape[0] is 9 but weight.shape[2] is 4"),
        (good.but(self=f32(4, 2, 4)), INVALID, "self has shape [4, 2, 4] but must have shape [3, 2, 4]"),
        (good.but(gradInput=f32(4, 2, 3)), INVALID, "gradInput has shape [4, 2, 3] but input has shape [5, 2, 3]"),
        (good.but(gradWeight=f32(3, 4, 3)), INVALID, "gradWeight has shape [3, 4, 3] but weight has shape [3, 3, 4]"),
        (good.but(gradBias=f32(3)), INVALID, "gradBias has shape [3] but bias has shape [4]"),
        (good.but(pad=-1), INVALID, "pad is -1; it must be ≥ 0"),
        (good.but(device=CPU, pad=-1), INVALID, "pad is -1; it must be ≥ 0"),
        (make(pad=256), INVALID, "pad is 256; it must be 0..255"),
        (good.but(cubeMathType=4), INVALID, "cubeMathType is 4; it must be 0, 1, 2 or 3"),
        (half.but(cubeMathType=3), INVALID, "cubeMathType is 3; it must be 0, 1 or 2"),
        (brain.but(cubeMathType=2), INVALID, "cubeMathType is 2; it must be 0 or 1"),
        (brain.but(cubeMathType=3), INVALID, "cubeMathType is 3; it must be 0 or 1"),
        (make(time=256, kernel=256), INVALID, "weight.shape[0] is 256; it must be 1..255"),
        (make(kernel=0), INVALID, "weight.shape[0] is 0; it must be 1..255"),
        (make(batch=0), INVALID, "self.shape is [5, 0, 4]; each element must be 1..2147483646"),
        (make(time=2), INVALID, "self.shape is [0, 2, 4]"),
        (make(time=0, pad=1), INVALID, "self.shape is [0, 2, 4]"),
        (make(in_channels=0), INVALID, "input.shape is [7, 2, 0]"),
    ]


def lstm() -> list[Row]:
    good = lstm_backward_case(lengths=(3, 1)).but(outputMask=(True,) * 4)
    tensors, outputs = ("input", "dy", "dh", "dc"), ("dxOut", "dhPrevOut", "dcPrevOut")
    lists = ("hx", "params", *SAVED, "dparamsOut")
    brain = as_type(good, BFLOAT16, *tensors, *outputs, *lists)
    first = {n: good.values[n][0] for n in lists}
    return [
        *nulls(good, *tensors, *lists, *outputs),
        *each_tensor(good),
        *((good.but(**{n: (None, *good.values[n][1:])}), NULL, f"{n}[0] is null") for n in lists),
        *((good.but(**{n: good.values[n][1:]}), INVALID, f"{n} has {len(good.values[n]) - 1} element") for n in lists),
        (good.but(hasBias=False), INVALID, "params has 4 elements but must have 2"),
        (good.but(**brain), INVALID, "input has dtype bfloat16; on Atlas A2 it must be float32 or float16"),
        *((good.but(**as_type(good, FLOAT16, n)), INVALID, f"{n} has dtype float16 but input") for n in tensors[1:]),
        *((good.but(**as_type(good, FLOAT16, n)), INVALID, f"{n}[0] has dtype float16 but input") for n in lists),
        *((good.but(**as_type(good, FLOAT16, n)), INVALID, f"{n} has dtype float16 but input") for n in outputs),
        (good.but(batchSizesOptional=dense(INT32, (3,), Format.ND)), INVALID, "batchSizesOptional has dtype int32"),
        (good.but(batchSizesOptional=dense(INT64, (2,), Format.ND)), INVALID, "batchSizesOptional has shape [2] but"),
        (good.but(numLayers=0), INVALID, "numLayers is 0; it must be ≥ 1"),
        (good.but(numLayers=-1, **brain), INVALID, "numLayers is -1; it must be ≥ 1"),
        (good.but(outputMask=(True,) * 3), INVALID, "outputMask has 3 elements but must have 4"),
        *((good.but(**{n: f32(3, 2)}), INVALID, f"{n} has rank 2") for n in (*tensors, *outputs)),
        *((good.but(**{n: f32(9, 9, 9)}), INVALID, f"{n} has shape [9, 9, 9]") for n in (*tensors[1:], *outputs)),
        *((good.but(**{n: (f32(9, 9, 9),)}), INVALID, f"{n}[0] has shape [9, 9, 9] but must") for n in SAVED),
        (good.but(hx=(first["hx"], f32(1, 2, 9))), INVALID, "hx[1] has shape [1, 2, 9] but must have shape [1, 2, 2]"),
        (good.but(dparamsOut=(f32(8, 9), *good.values["params"][1:])), INVALID, "dparamsOut[0] has shape [8, 9] but"),
        (good.but(params=(f32(8, 9), *good.values["params"][1:])), INVALID, "params[0] has shape [8, 9] but must"),
        *((good.but(**tagged(good, Format.NCHW, n)), INVALID, f"{n} has format NCHW") for n in (*tensors, *outputs)),
        (good.but(dropout=1.5), INVALID, "dropout is 1.5; it must be 0..1"),
        (good.but(dropout=-0.5), INVALID, "dropout is -0.5; it must be 0..1"),
    ]


def cell() -> list[Row]:
    good = thnn_fused_lstm_cell_backward_case()
    states, all_ = ("gradHyOptional", "gradCOptional", "cy", "gradCxOut"), [a.name for a in good.op.tensors]
    brain = as_type(good, BFLOAT16, *all_)
    return [
        *nulls(good, "cx", "cy", "storage", "gradGatesOut", "gradCxOut", "gradBiasOut"),
        *each_tensor(good),
        (good.but(**brain), INVALID, "gradHyOptional has dtype bfloat16; on Atlas A2 it must be float32 or float16"),
        *(
            (good.but(**as_type(good, FLOAT16, n)), INVALID, f"{n} has dtype float16 but cx has dtype float32")
            for n in all_
            if n != "cx"
        ),
        *((good.but(**{n: f32(3)}), INVALID, f"{n} has rank 1") for n in all_ if n != "gradBiasOut"),
        *((good.but(**{n: f32(3, 5)}), INVALID, f"{n} has shape [3, 5] but cx has shape [3, 4]") for n in states),
        (good.but(storage=f32(3, 12)), INVALID, "storage has shape [3, 12] but must have shape [3, 16]"),
        (good.but(gradGatesOut=f32(3, 12)), INVALID, "gradGatesOut has shape [3, 12] but storage has shape [3, 16]"),
        (good.but(gradBiasOut=f32(12)), INVALID, "gradBiasOut has shape [12] but must have shape [16]"),
        *((good.but(**tagged(good, Format.NCL, n)), INVALID, f"{n} has format NCL") for n in all_),
    ]


ROWS = [
    pytest.param(*row, id=f"{row[0].op.name}-{i}-{row[2][:40]}")
    for rows in (elu(), convolution(), conv_tbc(), lstm(), cell())
    for i, row in enumerate(rows)
]


@pytest.mark.parametrize(("case", "code", "says"), ROWS)
def test_a_documented_row_has_its_code_and_says_what_is_wrong(case: Case, code: int, says: str) -> None:
    with pytest.raises(aclnn.AclnnError) as refused:
        call(case, fill(case))
    assert refused.value.message.startswith(f"{case.op.name}: {says}")
    assert refused.value.code == code


def test_nothing_is_written_when_a_call_is_refused() -> None:
    for case, _, _ in (row for rows in (elu(), convolution(), conv_tbc(), lstm(), cell()) for row in rows[::3]):
        filled = fill(case)
        with pytest.raises(aclnn.AclnnError):
            call(case, filled)
        for arg in case.op.fresh:
            value = filled[arg.name]
            for tensor in value if isinstance(value, list) else [value]:
                if tensor is not None and tensor.spec.inside_storage:
                    assert (tensor.view != tensor.view).all()
