"""Dtypes, scalars and rounding."""

from __future__ import annotations

import math
import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aclnn
from aclnn.base import device as devices
from aclnn.base import dtype as dtypes
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from aclnn.base.rounding import cube_inputs, to_fp16, to_hf32
from aclnn.base.scalar import scalar, too_wide
from aclnn.base.status import AclnnError, Status

NUMBERS = {0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 7: "uint16", 8: "uint32"}
NUMBERS |= {9: "int64", 10: "uint64", 11: "float64", 12: "bool", 16: "complex64", 17: "complex128", 27: "bfloat16"}
NUMBERS |= {34: "hifloat8", 35: "float8_e5m2", 36: "float8_e4m3fn", 37: "float8_e8m0", 38: "float6_e3m2"}
NUMBERS |= {
    39: "float6_e2m3",
    40: "float4_e2m1",
    41: "float4_e1m2",
    13: "string",
    29: "int4",
    30: "uint1",
    33: "complex32",
}


def test_dtype_numbers_and_names() -> None:
    assert {d.number: d.name for d in dtypes.ALL} == NUMBERS
    for d in dtypes.ALL:
        assert dtypes.by_number(d.number) is d
        assert dtypes.by_name(d.name.upper()) is d
        assert dtypes.by_name(d.acl_name) is d
        assert d.numpy is None or dtypes.by_numpy(d.numpy) is d
        assert pickle.loads(pickle.dumps(d)) is d
    assert dtypes.by_number(5) is None
    assert dtypes.by_name("bf16") is BFLOAT16
    assert dtypes.by_numpy(np.dtype(">f4")) is None


def test_promotion() -> None:
    assert dtypes.promote([FLOAT16, FLOAT16]) is FLOAT16
    assert dtypes.promote([FLOAT16, BFLOAT16]) is FLOAT32
    assert dtypes.promote([FLOAT32, BFLOAT16]) is FLOAT32
    assert dtypes.promote([FLOAT64, FLOAT32]) is FLOAT64


@given(st.floats(width=32))
def test_hf32_is_the_nearest_number_with_11_mantissa_bits(value: float) -> None:
    x = np.float32(value)
    rounded = float(to_hf32(np.array([x]))[0])
    if not math.isfinite(x):
        assert rounded == x or math.isnan(rounded)
        return
    _, exponent = math.frexp(float(x))
    step = 2.0 ** (max(exponent - 1, -126) - 11)
    expected = math.copysign(math.floor(abs(float(x)) / step + 0.5) * step, float(x))  # ties away from zero
    assert rounded == (expected if expected < 2.0**128 else math.inf) or abs(expected) >= 2.0**128


def test_hf32_ties_go_away_from_zero_and_zero_keeps_its_sign() -> None:
    tie = np.float32(1 + 2**-12)
    assert to_hf32(np.array([tie, -tie])).tolist() == [1 + 2**-11, -1 - 2**-11]
    assert np.signbit(to_hf32(np.array([-0.0], np.float32)))[0]
    assert to_hf32(np.array(1.0, np.float32)).shape == ()


def test_cube_math_type_rounds_only_float32_mixtures() -> None:
    x = np.array([1 + 2**-12, 70000.0], np.float32)
    h = np.array([1.0, 2.0], np.float16)
    assert np.array_equal(cube_inputs(0, x)[0], x)
    assert np.array_equal(cube_inputs(1, x)[0], to_hf32(x))
    assert np.array_equal(cube_inputs(3, x, h)[0], to_hf32(x))
    assert np.array_equal(cube_inputs(2, x)[0], to_fp16(x))
    assert cube_inputs(2, x)[0][1] == np.inf
    assert np.array_equal(cube_inputs(1, h)[0], h)
    b = np.array([1 + 2**-7], ml_dtypes.bfloat16)
    assert cube_inputs(1, b)[0].tolist() == [1 + 2**-7]
    assert cube_inputs(1, b, h[:1])[0].dtype == np.float64


def test_scalars_are_told_apart_by_their_bits() -> None:
    assert scalar(0.0) != scalar(-0.0)
    assert scalar(float("nan")) == scalar(float("nan"))
    assert scalar(1) != scalar(1.0)
    assert scalar(True).dtype.name == "bool"
    assert scalar(np.float16(2)).dtype is FLOAT16
    assert scalar(np.array(2, ml_dtypes.bfloat16)).value == 2
    assert scalar(1 / 3).rounded_to(FLOAT32) == float(np.float32(1 / 3))
    assert scalar(1e300).rounded_to(FLOAT32) == math.inf
    assert scalar(1j).dtype.is_complex
    assert scalar(scalar(2.5)) == scalar(2.5)


@pytest.mark.parametrize("wrong", ["1", None, [1], np.zeros(2), 2**63, -(10**400), object()])
def test_what_is_no_scalar_is_refused(wrong: object) -> None:
    with pytest.raises(AclnnError, match="a scalar is "):
        scalar(wrong)
    with pytest.raises(AclnnError, match="alpha is "):
        scalar(wrong, name="alpha")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Atlas A2 训练系列产品/Atlas 800I A2 推理产品/A200I A2 Box 异构组件", "A2"),
        ("Atlas A2 训练系列产品/Atlas A2 推理系列产品", "A2"),
        ("Atlas A2训练系列产品", "A2"),
        ("Atlas A3 训练系列产品/Atlas A3 推理系列产品", "A3"),
        ("Ascend 950PR/Ascend 950DT", "950"),
        ("<term>Atlas 推理系列产品</term>", "310P"),
        ("Atlas 训练系列产品", "910"),
        ("Atlas 200I/500 A2 推理产品", "310B"),
        ("Atlas A2 Training Series Products", "A2"),
        ("Atlas inference products", "310P"),
    ],
)
def test_products_are_found_as_documents_write_them(name: str, key: str) -> None:
    assert devices.find(name).key == key


def test_products_are_found_by_any_name() -> None:
    for name in ("A2", "a2", "Atlas A2", "ascend910b1"):
        assert devices.find(name) is devices.DEFAULT
    assert devices.find("cpu") is devices.CPU
    with pytest.raises(AclnnError, match=r"there is no product 'A9'; choose one of Atlas A2 \(A2\)"):
        devices.find("A9")


def test_the_error_carries_code_name_and_survives_pickling() -> None:
    error = AclnnError(Status.ACLNN_ERR_PARAM_INVALID, "x is 1; it must be 2.", argument="x", rule="Between")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.name, again.message, again.argument, again.rule) == (
        161002,
        "ACLNN_ERR_PARAM_INVALID",
        "x is 1; it must be 2.",
        "x",
        "Between",
    )
    assert str(error) == "[161002 ACLNN_ERR_PARAM_INVALID] x is 1; it must be 2."
    assert isinstance(error, aclnn.AclnnError)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(300, "300"), (-129, "-129"), (10**5000, "an integer of 16610 bits")],
    ids=["300", "-129", "huge"],
)
def test_an_integer_that_is_too_wide_is_named(number: int, shown: str) -> None:
    assert too_wide("cubeMathType", number, 8).message == f"cubeMathType is {shown}; it must be -128..127."
