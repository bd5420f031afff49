"""A test of a training step, as pytest runs it: `pytest examples/dumps/test_step.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import aclnn
import aclnn.torch

sys.path.insert(0, str(Path(__file__).parent))
from models import Speech, inputs


def test_every_call_of_a_step_is_right(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Speech()
    with aclnn.torch.record(model, tmp_path):  # on an NPU: model.npu(), or a dump of msprobe
        model(inputs("speech")).backward()
    aclnn.compare(tmp_path).assert_right()
