"""Numbers, types, formats and products as C passes them: every value, also those that have no name."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

from aclnn import ops
from aclnn.base import dtype as dtypes
from aclnn.base.device import DEVICES
from aclnn.base.scalar import scalar
from aclnn.contract.cases import fill
from tests.doors.c_door import CCall, library
from tests.doors.toolchain import PROGRAMS, compile_program, needs_compiler, run_program
from tests.harness import bits, call

pytestmark = needs_compiler


def test_every_half_becomes_its_float() -> None:
    to_float = library().aclFloat16ToFloat
    to_float.argtypes, to_float.restype = [ctypes.c_uint16], ctypes.c_float
    found = np.array([to_float(i) for i in range(65536)], np.float32)
    expected = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected)).all()


def test_floats_round_to_the_nearest_half_and_ties_to_even() -> None:
    to_half = library().aclFloatToFloat16
    to_half.argtypes, to_half.restype = [ctypes.c_float], ctypes.c_uint16
    halves = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = ((halves[1:-1].astype(np.float64) + halves[:-2]) / 2).astype(np.float32)
    special = np.array([np.inf, np.nan, 65504, 65519.99, 65520, 1e30, 1e-30, 2**-25, 2**-24], np.float32)
    below, above = np.nextafter(middles, np.float32(-1)), np.nextafter(middles, np.float32(1e9))
    values = np.concatenate([halves, middles, below, above, special])
    for numbers in (values, -values):
        found = np.array([to_half(v) for v in numbers.tolist()], np.uint16)
        with np.errstate(over="ignore"):
            expected = numbers.astype(np.float16)
        is_number = ~np.isnan(numbers)
        np.testing.assert_array_equal(found[is_number], expected.view(np.uint16)[is_number])
        assert np.isnan(found.view(np.float16)[~is_number]).all()


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if not d.whole_bytes], ids=str)
def test_a_scalar_of_a_dtype_without_a_size_is_refused(dtype: dtypes.DType) -> None:
    one = ctypes.c_int64(1)
    assert library().aclCreateScalar(ctypes.byref(one), dtype.number) in (0, None)
    text = f"aclCreateScalar: dataType is {dtype.number}, which is no type with a size; how much to read is not known."
    assert library().aclGetRecentErrMsg().decode() == text


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.whole_bytes], ids=str)
def test_scalars_of_every_dtype_are_read_as_python_reads_them(dtype: dtypes.DType) -> None:
    op = ops.find("aclnnEluBackward")
    number = 1 if dtype.numpy is None or dtype.is_complex or dtype.name == "bool" else 3
    case = ops.case_maker(op)(alpha=number).but(alpha=scalar(number, dtype))
    from_python, from_c = fill(case), fill(case)
    made = CCall(case, from_c)
    code, message = made.outcome()
    made.destroy()
    if dtype.is_complex or dtype.numpy is None:
        text = f"{op.name}: alpha has dtype {dtype}; it must be one that can be cast to float (integer, float or bool)."
        assert (code, message) == (161002, text)
    else:
        call(case, from_python)
        assert (code, message) == (0, "")
        assert bits(case, from_c) == bits(case, from_python)


def tensor(shape: list[int], dtype: int, tag: int, storage: list[int] | None = None) -> ctypes.c_void_p:
    sizes, count = (ctypes.c_int64 * len(shape))(*shape), ctypes.c_uint64(len(shape))
    room = None if storage is None else (ctypes.c_int64 * len(storage))(*storage)
    places = ctypes.c_uint64(0 if storage is None else len(storage))
    make = library().aclCreateTensor
    return ctypes.c_void_p(make(sizes, count, dtype, None, ctypes.c_int64(0), tag, room, places, None))


def refusal_of_elu(grad: ctypes.c_void_p) -> tuple[int, str]:
    lib = library()
    one = ctypes.c_float(1)
    number = ctypes.c_void_p(lib.aclCreateScalar(ctypes.byref(one), 0))
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    results = ctypes.byref(size), ctypes.byref(executor)
    lib.aclGetRecentErrMsg()
    code = lib.aclnnEluBackwardGetWorkspaceSize(grad, *[number] * 3, ctypes.c_bool(False), grad, grad, *results)
    lib.aclDestroyAclOpExecutor(executor)
    lib.aclDestroyScalar(number)
    return code, lib.aclGetRecentErrMsg().decode()


@pytest.mark.parametrize("number", [-1, 5, 14, 999, -(2**31), 2**31 - 1])
def test_a_dtype_without_a_name(number: int) -> None:
    grad = tensor([2], number, 2, [2])
    text = f"aclnnEluBackward: gradOutput has dtype undefined ({number}); on Atlas A2 it must be float32, float16 or "
    assert refusal_of_elu(grad) == (161002, text + "bfloat16.")
    library().aclDestroyTensor(grad)


def test_a_format_without_a_name_is_as_good_as_any_to_elu() -> None:
    grad = tensor([2], 0, 77, [2])
    assert refusal_of_elu(grad) == (0, "")
    library().aclDestroyTensor(grad)


def test_storage_that_is_not_described_is_trusted_and_described_storage_is_not() -> None:
    trusted, described = tensor([4], 0, 2), tensor([4], 0, 2, [3])
    assert refusal_of_elu(trusted) == (0, "")
    text = "aclnnEluBackward: the view of gradOutput touches elements 0 to 3 of a storage of 3; it must stay inside."
    assert refusal_of_elu(described) == (161002, text)
    for one in (trusted, described):
        library().aclDestroyTensor(one)


def test_a_view_that_no_memory_holds_is_refused() -> None:
    lib = library()
    sizes, strides = (ctypes.c_int64 * 2)(2, 2), (ctypes.c_int64 * 2)(2**61, 1)
    memory = (ctypes.c_float * 4)()
    two, none = ctypes.c_uint64(2), ctypes.c_uint64(0)
    zero = ctypes.c_int64(0)
    grad = ctypes.c_void_p(lib.aclCreateTensor(sizes, two, 0, strides, zero, 2, None, none, memory))
    out = ctypes.c_void_p(lib.aclCreateTensor(sizes, two, 0, None, zero, 2, None, none, memory))
    one = ctypes.c_float(1)
    number = ctypes.c_void_p(lib.aclCreateScalar(ctypes.byref(one), 0))
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    results = ctypes.byref(size), ctypes.byref(executor)
    assert lib.aclnnEluBackwardGetWorkspaceSize(grad, *[number] * 3, ctypes.c_bool(False), grad, out, *results) == 0
    assert lib.aclnnEluBackward(None, size, executor, None) == 161002
    assert "gradOutput has a view that no memory can hold" in lib.aclGetRecentErrMsg().decode()
    for destroy, handle in ((lib.aclDestroyAclOpExecutor, executor), (lib.aclDestroyScalar, number)):
        assert destroy(handle) == 0
    assert (lib.aclDestroyTensor(grad), lib.aclDestroyTensor(out)) == (0, 0)


SOC_NAME = """#include <cstdio>
#include "acl/acl.h"
int main() { std::puts(aclrtGetSocName()); }
"""


def test_the_product_comes_from_the_environment(tmp_path: Path) -> None:
    source = tmp_path / "soc.cpp"
    source.write_text(SOC_NAME)
    soc, tiny = compile_program(source, tmp_path), compile_program(PROGRAMS / "tiny.cpp", tmp_path)
    for product in DEVICES:
        assert run_program([soc], {"ACLNN_PRODUCT": product.name.upper()}).stdout == product.soc + "\n"
    refused = run_program([tiny], {"ACLNN_PRODUCT": "310B"}).stdout
    assert refused.startswith("161002 aclnnEluBackward: product Atlas 200I/500 A2 does not support this operator")
    unknown = run_program([tiny], {"ACLNN_PRODUCT": "nonsense"}).stdout
    assert unknown.startswith("161002 there is no product 'nonsense'; choose one of Atlas A2 (A2)")


def test_one_line_per_run_with_verbose(tmp_path: Path) -> None:
    tiny = compile_program(PROGRAMS / "tiny.cpp", tmp_path)
    ended = run_program([tiny], {**os.environ, "ACLNN_VERBOSE": "1", "ACLNN_ENGINE": "numpy"})
    assert ended.stderr.startswith("aclnn,aclnnEluBackward,gradOutput=float32:4 ")
    assert "kernel=numpy" in ended.stderr
