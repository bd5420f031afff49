"""Sizes at the limits: views of 2³¹−2 elements on memory for one. Refused or done, never a wrong index."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import aclnn
from tests.hostile.liars import answer

LIMIT = 2**31 - 2
ENGINES = ("auto", "numpy", "reference")


def repeated(*shape: int, dtype: Any = np.float32) -> Any:
    """One element, seen so many times."""
    return np.lib.stride_tricks.as_strided(np.ones(1, dtype), shape, (0,) * len(shape))


REFUSALS = {
    "another size": lambda: aclnn.elu_backward(repeated(LIMIT), 1.0, 1.0, 1.0, True, repeated(LIMIT - 1)),
    "an output that is one element": lambda: aclnn.elu(repeated(LIMIT), out=repeated(LIMIT)),
    "in place on one element": lambda: aclnn.elu_(repeated(LIMIT)),
    "a short output": lambda: aclnn.elu(repeated(LIMIT), out=np.empty(1, np.float32)),
    "a long kernel": lambda: conv(repeated(1, 1, LIMIT), repeated(1, 1, LIMIT)),
    "a far padding": lambda: conv(repeated(1, 1, 4), repeated(1, 1, 1), padding=2**62),
    "channels that differ": lambda: conv(repeated(1, LIMIT, 1), repeated(1, LIMIT - 1, 1)),
    "a wide gate": lambda: aclnn.thnn_fused_lstm_cell(repeated(1, 2**31), repeated(1, 2**31), repeated(1, 2**28)),
    "a far pad": lambda: aclnn.conv_tbc(repeated(4, 1, 1), repeated(1, 1, 1), repeated(1), 2**62),
}


def conv(input: Any, weight: Any, padding: int = 0) -> Any:
    return aclnn.convolution(input, weight, None, 1, padding, 1, False, 0, 1, 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_costs_nothing(what: str, engine: str) -> None:
    with aclnn.engine(engine):
        refused = answer(REFUSALS[what])
    assert refused is not None
    assert refused.code == 161002


IN_LITTLE_MEMORY = """
import resource, sys
import numpy as np
import aclnn
from tests.peak import peak_kilobytes
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
def repeated(*shape):
    return np.lib.stride_tricks.as_strided(np.ones(1, np.float32), shape, (0,) * len(shape))
def conv(input, weight, stride=1, padding=0, dilation=1, transposed=False):
    return aclnn.convolution(input, weight, None, stride, padding, dilation, transposed, 0, 1, 0)
weights = [repeated(4, 1), repeated(4, 1)]
one_layer = dict(has_bias=False, num_layers=1, bidirectional=False, batch_first=False)
def lstm_arguments(steps, batch):
    sequence, state = repeated(steps, batch, 1), repeated(1, batch, 1)
    return sequence, [state, state], weights, sequence, state, state, *[[sequence]] * 7
n = 2**31 - 2
calls = [
    lambda: aclnn.elu(repeated(n)),
    lambda: aclnn.elu(repeated(2**40)),
    lambda: aclnn.elu(repeated(2**20, 2**20, 2**10)),
    lambda: conv(repeated(1, 1, n), repeated(1, 1, 1)),
    lambda: conv(repeated(1, 1, n), repeated(1, 1, n)),
    lambda: conv(repeated(1, 1, 4), repeated(1, 1, 1), padding=2**62),
    lambda: conv(repeated(1, 1, 4), repeated(1, 1, 3), stride=2**62, transposed=True),
    lambda: aclnn.conv_tbc(repeated(n, 1, 1), repeated(1, 1, 1), repeated(1), 0),
    lambda: aclnn.conv_tbc(repeated(4, 1, 1), repeated(1, 1, 1), repeated(1), 2**62),
    lambda: aclnn.elu_backward(repeated(n), 1.0, 1.0, 1.0, True, repeated(n)),
    lambda: aclnn.convolution_backward(
        repeated(1, 1, n), repeated(1, 1, n), repeated(1, 1, 1), [1], 1, 0, 1, False, 0, 1, [True, True, True]
    ),
    lambda: aclnn.conv_tbc_backward(repeated(n, 1, 1), repeated(n, 1, 1), repeated(1, 1, 1), repeated(1), 0),
    lambda: aclnn.lstm(repeated(n, 1, 1), weights, **one_layer),
    lambda: aclnn.lstm(repeated(1, n, 1), weights, **one_layer),
    lambda: aclnn.lstm_backward(*lstm_arguments(n, 1), **one_layer),
    lambda: aclnn.lstm_backward(*lstm_arguments(1, n), **one_layer),
    lambda: aclnn.thnn_fused_lstm_cell(repeated(n, 4), repeated(n, 4), repeated(n, 1)),
    lambda: aclnn.thnn_fused_lstm_cell_backward(*[repeated(n, 1)] * 4, repeated(n, 4), True),
]
with aclnn.product("cpu"), aclnn.engine(sys.argv[1]):
    for number, call in enumerate(calls):
        try:
            call()
        except aclnn.AclnnError as error:
            assert error.code in (361001, 161002), error
        else:
            raise SystemExit(f"call {number} was served")
    assert conv(repeated(1, 1, 4), repeated(1, 1, 3), padding=2**62, dilation=2**62).tolist() == [[[1, 1, 1, 1]]]
    assert aclnn.elu(np.float32([1])).tolist() == [1]
assert peak_kilobytes() < 2**20, "a gigabyte was touched"
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_more_than_there_is_memory_for_is_a_code_and_the_process_goes_on(engine: str) -> None:
    ended = subprocess.run([sys.executable, "-c", IN_LITTLE_MEMORY, engine], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_an_empty_view_of_any_size_is_served() -> None:
    assert aclnn.elu(repeated(0, LIMIT)).shape == (0, LIMIT)


def test_many_axes_of_one_element_and_strides_that_lead_nowhere() -> None:
    odd = np.lib.stride_tricks.as_strided(np.full(1, -1, np.float32), (1,) * 8, (2**40,) * 8)
    assert aclnn.elu(odd).shape == (1,) * 8


@pytest.mark.long
def test_two_to_the_31_elements_are_indexed_right() -> None:
    """float16 in, float16 out: 4 GB (numpy alone would widen them to 26). The last are not those of a wrapped index."""
    pytest.importorskip("numba")
    few = np.array([-1, 1], np.float16)
    many = np.lib.stride_tricks.as_strided(few, (2**30 - 1, 2), (0, 2))
    found = aclnn.elu(many, engine="fast")
    assert (found[:: 2**20] == aclnn.elu(few)).all()
    assert (found[-3:] == aclnn.elu(few)).all()
