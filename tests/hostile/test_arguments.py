"""Every argument of every operator, given everything it must not be: a code and one sentence, nothing else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import Arg, Op
from tests.hostile.liars import HUGE_NUMBERS, LIARS, Endless, EveryAttributeRaises, answer, name_of

ARGUMENTS = [(op, arg) for op in ops.all_ops() for arg in op.args]
X = np.array([-2, -1, 0, 1], np.float32)


def call_with(case: Case, arg: Arg, value: Any) -> None:
    """The case's call with one argument replaced."""
    filled = fill(case) | {arg.name: value}
    given = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.fresh) if arg.out and not arg.given else None
    getattr(aclnn, case.op.python)._call(given, out, case.device, "numpy")


@pytest.mark.parametrize(("op", "arg"), ARGUMENTS, ids=lambda v: v.name)
def test_every_wrong_value_gets_a_code_and_one_sentence(op: Op, arg: Arg) -> None:
    case = next(ops.cases(op))
    refused = 0
    for value in LIARS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, about what it was asked to convert
            error = answer(lambda value=value: call_with(case, arg, value))  # type: ignore[misc]
        if error is not None:
            refused += 1
            assert error.message.startswith(op.name), name_of(value)
            assert "\n" not in error.message, name_of(value)
            assert error.code in (161001, 161002), (name_of(value), error.message)
    assert refused > len(LIARS) // 2


@pytest.mark.parametrize("number", HUGE_NUMBERS, ids=name_of)
def test_numbers_beyond_every_type_are_refused_or_computed(number: Any) -> None:
    for give in (
        lambda: aclnn.elu(X, alpha=number),
        lambda: aclnn.conv_tbc(X.reshape(4, 1, 1), X[:1].reshape(1, 1, 1), X[:1], number),
        lambda: aclnn.convolution(X.reshape(1, 1, 4), X.reshape(1, 1, 4), None, number, 0, 1, False, 0, 1, 0),
    ):
        error = answer(give)
        assert error is None or error.code == 161002


@pytest.mark.parametrize(
    "wrong", [3, "", "gpu\n", object(), EveryAttributeRaises(), np.zeros(3), [], Endless()], ids=name_of
)
def test_settings_of_every_type(wrong: Any) -> None:
    for give in (
        lambda: aclnn.elu(X, engine=wrong),
        lambda: aclnn.elu(X, product=wrong),
        lambda: aclnn.elu(X, out=wrong),
        lambda: aclnn.engine(wrong).__enter__(),
        lambda: aclnn.product(wrong).__enter__(),
    ):
        with pytest.raises(aclnn.AclnnError):
            give()


@pytest.mark.parametrize(
    "wrong", [0, -1, 10**9, 10**30, 1.5, "1.5", None, object(), EveryAttributeRaises(), np.ones(2)]
)
def test_thread_counts_of_every_type(wrong: Any) -> None:
    with pytest.raises(aclnn.AclnnError, match="whole number of at least 1"), aclnn.threads(wrong):
        pass


@pytest.mark.parametrize(
    "described",
    [
        {"shape": "ab"},
        {"shape": [1.5]},
        {"shape": Endless()},
        {"shape": [-1]},
        {"shape": [2**62]},
        {"shape": [1] * 65},
        {"shape": [2], "strides": [1, 1]},
        {"shape": [1], "strides": [2**61]},
        {"shape": [1], "strides": EveryAttributeRaises()},
        {"offset": "x"},
        {"offset": 2**70},
        {"format": 7},
        {"format": "NC4HW"},
        {"format": object()},
    ],
    ids=lambda v: ", ".join(f"{k}={name_of(x)}" for k, x in v.items()),
)
def test_tensors_that_cannot_be_described(described: dict[str, Any]) -> None:
    with pytest.raises(aclnn.AclnnError):
        aclnn.Tensor(X, **described)


@pytest.mark.parametrize(
    "described",
    [
        {"shape": [5]},
        {"shape": [2], "offset": -1},
        {"shape": [2], "strides": [2**60], "offset": 3},
        {"shape": [2**60] * 3},
    ],
    ids=lambda v: ", ".join(f"{k}={name_of(x)}" for k, x in v.items()),
)
def test_views_that_leave_their_storage_are_never_read(described: dict[str, Any]) -> None:
    tensor = aclnn.Tensor(X, **described)
    for use in (
        lambda: aclnn.elu(tensor),
        lambda: tensor.view,
        lambda: aclnn.elu.plan(X, repeatable=True).set_address("self", tensor),
    ):
        with pytest.raises(aclnn.AclnnError, match="storage"):
            use()


def test_a_wild_stride_of_one_element_leads_nowhere() -> None:
    assert aclnn.elu(aclnn.Tensor(X, (1, 4), (2**59, 1))).tolist() == aclnn.elu(X).reshape(1, 4).tolist()
