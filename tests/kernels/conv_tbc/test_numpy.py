"""The numpy kernel of the convolution over time on sizes of real models."""

from __future__ import annotations

import pytest

from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.ops.conv_tbc import conv_tbc_backward_case
from tests.harness import assert_sound

MODELS = {
    "translation": {"time": 30, "batch": 8, "in_channels": 64, "out_channels": 128, "kernel": 3, "pad": 1},
    "speech": {"time": 200, "batch": 2, "in_channels": 40, "out_channels": 32, "kernel": 11, "pad": 5},
    "long kernel": {"time": 10, "batch": 3, "in_channels": 4, "out_channels": 5, "kernel": 101, "pad": 50},
}


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_sizes_of_real_models_are_sound(model: str, dtype: DType) -> None:
    assert_sound(conv_tbc_backward_case(**MODELS[model], dtype=dtype), "numpy")


def test_padding_far_beyond_the_input() -> None:
    assert_sound(conv_tbc_backward_case(time=3, kernel=2, pad=1000, device=CPU), "numpy")
