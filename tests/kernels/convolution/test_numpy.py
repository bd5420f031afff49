"""The numpy convolution kernel on layers of real networks, and how it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.contract.cases import fill
from aclnn.kernels.convolution import numpy as convolution
from aclnn.kernels.registry import kernels_of
from aclnn.ops.convolution import convolution_backward_case
from tests.harness import assert_sound, call

LAYERS = {
    "3x3": {"batch": 2, "in_channels": 32, "out_channels": 48, "size": 28, "kernel": 3, "padding": 1},
    "1x1": {"batch": 2, "in_channels": 64, "out_channels": 32, "size": 28, "kernel": 1},
    "stem 7x7": {"in_channels": 3, "out_channels": 16, "size": 56, "kernel": 7, "stride": 2, "padding": 3},
    "depthwise": {"in_channels": 32, "out_channels": 32, "groups": 32, "size": 28, "kernel": 3, "padding": 1},
    "depthwise, two each": {"in_channels": 16, "out_channels": 32, "groups": 16, "size": 14, "kernel": 3, "stride": 2},
    "grouped": {"in_channels": 32, "out_channels": 64, "groups": 8, "size": 14, "kernel": 3, "padding": 1},
    "dilated": {"in_channels": 8, "out_channels": 8, "size": 20, "kernel": 3, "padding": 4, "dilation": 4},
    "patches": {"in_channels": 3, "out_channels": 24, "size": 32, "kernel": 8, "stride": 8},
    "upsampling": {"in_channels": 16, "out_channels": 8, "size": 14, "kernel": 4, "stride": 2, "padding": 1},
    "sound": {"nd": 1, "in_channels": 8, "out_channels": 16, "size": 500, "kernel": 25, "stride": 4, "padding": 11},
    "video": {"nd": 3, "in_channels": 6, "out_channels": 8, "size": 10, "kernel": 3, "padding": 1},
}
LAYERS["upsampling"]["transposed"] = True


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_of_real_networks_are_sound(layer: str, dtype: DType) -> None:
    assert_sound(convolution_backward_case(**LAYERS[layer], dtype=dtype), "numpy")


def test_the_numpy_kernel_is_the_last_one_asked() -> None:
    assert kernels_of("aclnnConvolutionBackward", "convolution")[-1].name == "numpy"


def test_nothing_is_written_before_everything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(convolution, "_channel_sums", out_of_memory)  # the last thing that is computed
    case = convolution_backward_case(size=4)
    filled = fill(case)
    with pytest.raises(Exception, match="out of memory"):
        call(case, filled, engine="numpy")
    assert all(np.isnan(filled[name].view).all() for name in ("gradInput", "gradWeight", "gradBias"))


def test_a_huge_dilation_costs_nothing() -> None:
    """Taps that meet only padding are left out, so this ends at once."""
    from aclnn.base.device import CPU

    far = 10**15
    case = convolution_backward_case(1, size=3, kernel=3, padding=far, dilation=far, device=CPU)
    filled = assert_sound(case, "numpy")
    assert not filled["gradWeight"].view[:, :, [0, 2]].any()
    assert filled["gradWeight"].view[:, :, 1].all()
