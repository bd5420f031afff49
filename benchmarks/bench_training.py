"""A training step of examples/torch/train.py: the model as it is, and with our modules swapped in."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from aclnn.base.dtype import DType
from benchmarks.measure import Call
from benchmarks.providers import Maker

DTYPES = ("float32",)
EXAMPLE = Path(__file__).parents[1] / "examples" / "torch" / "train.py"


def work(shape: dict[str, Any], dtype: DType) -> dict[str, float]:
    return {}


def makers(shape: dict[str, Any], dtype: DType, column: str) -> dict[str, Maker]:
    return {"aclnn": lambda: _step(shape["batch"], swapped=True), "torch": lambda: _step(shape["batch"], swapped=False)}


def _step(batch: int, swapped: bool) -> Call:
    import torch

    import aclnn.torch

    example = _example()
    torch.manual_seed(0)
    model = example.Classifier()
    if swapped:
        aclnn.torch.swap(model)
    run, (given,) = example.Run("", model, torch.float32), example.batches(1, batch)

    def step() -> float:
        run.step(*given)
        return float(run.losses[-1])

    return step


def _example() -> ModuleType:
    found = importlib.util.spec_from_file_location("train_example", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    example = importlib.util.module_from_spec(found)
    found.loader.exec_module(example)
    return example
