"""Any sizes, attributes, dtypes and strides of every operator, on any engine and number of threads."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from aclnn import ops
from aclnn.contract.model import Op
from tests.every.checks import ENGINES, assert_right, assert_same_bits
from tests.every.draw import one

SHRINKABLE = st.randoms(use_true_random=False)


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
@settings(max_examples=100)
@given(rng=SHRINKABLE, engine=st.sampled_from(ENGINES), threads=st.integers(1, 3), seed=st.integers(0, 9))
def test_any_call_is_right(op: Op, rng: Random, engine: str, threads: int, seed: int) -> None:
    # A broadcast operand makes equal terms, of which oneDNN's sums keep no bound: 1.23 of it at 96 terms of conv_tbc.
    case = one(op, rng, broadcast=engine != "fast")
    note(f"{case.device}: {case.values}")
    assert_right(case, engine, threads, seed)


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
@settings(max_examples=30)
@given(rng=SHRINKABLE, engine=st.sampled_from(ENGINES))
def test_any_call_gives_the_same_bits(op: Op, rng: Random, engine: str) -> None:
    case = one(op, rng)
    note(f"{case.device}: {case.values}")
    assert_same_bits(case, engine)
