"""Whoever is timed beside ours computes the same."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from benchmarks.pages import ROOT
from benchmarks.providers import has, made

from aclnn.base.dtype import FLOAT32

SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("elu", {"size": [3, 4]}),
    ("conv_tbc", {"x": [7, 2, 3], "w": [3, 3, 4], "padding": 1}),
    ("lstm_cell", {"size": [3, 4]}),
    ("convolution", {"x": [2, 3, 9, 9], "w": [4, 3, 3, 3], "stride": 2, "padding": 1}),
    ("convolution", {"x": [2, 6, 8, 8], "w": [6, 2, 3, 3], "padding": 2, "dilation": 2, "groups": 3}),
    ("convolution", {"x": [2, 6, 5, 5], "w": [6, 4, 4, 4], "stride": 2, "padding": 1, "transposed": True}),
    ("convolution", {"x": [2, 3, 9], "w": [4, 3, 3], "padding": 1}),
    ("convolution", {"x": [1, 2, 4, 5, 6], "w": [3, 2, 3, 3, 3], "padding": 1}),
]


def agree(operator: str, shape: dict[str, Any], first: str, second: str, column: str = "fresh") -> None:
    """The results of two providers, with the tolerances of PyTorch."""
    import torch

    bench: Any = importlib.import_module(f"benchmarks.bench_{operator}")
    calls = made(bench.makers(shape, FLOAT32, column), (first, second))
    results = [calls[name]() for name in (first, second)]
    ours, theirs = ([torch.from_numpy(a) for a in _arrays(result)] for result in results)
    torch.testing.assert_close(ours, theirs)


def _arrays(result: Any) -> list[np.ndarray]:
    if isinstance(result, tuple | list):
        return [array for part in result for array in _arrays(part)]
    return [np.from_dlpack(result.detach() if hasattr(result, "detach") else result).copy()]


@pytest.mark.torch
@pytest.mark.parametrize(("operator", "shape"), SHAPES)
def test_pytorch_computes_the_same(operator: str, shape: dict[str, Any]) -> None:
    agree(operator, shape, "aclnn", "torch")


@pytest.mark.torch
@pytest.mark.parametrize("column", ["given", "out", "torch", "step"])
@pytest.mark.parametrize(("operator", "shape"), SHAPES)
def test_every_door_computes_the_same(operator: str, shape: dict[str, Any], column: str) -> None:
    agree(operator, shape, "aclnn", "torch", column)


@pytest.mark.torch
def test_a_step_of_an_lstm_computes_the_same() -> None:
    """Its gradients alone would begin with states that are drawn, where PyTorch's come from its forward."""
    agree("lstm", {"size": [3, 2, 4, 5]}, "aclnn", "torch", "step")


@pytest.mark.torch
@pytest.mark.parametrize(("operator", "shape"), [*SHAPES, ("lstm", {"size": [3, 2, 4, 5]})])
def test_forwards_compute_the_same(operator: str, shape: dict[str, Any]) -> None:
    """The states come first; what else is kept for the backward is everybody's own."""
    import torch

    bench: Any = importlib.import_module(f"benchmarks.bench_{operator}")
    calls = made(bench.makers(shape, FLOAT32, "forward"), ("aclnn", "torch"))
    ours, theirs = ([torch.from_numpy(a) for a in _arrays(calls[name]())] for name in ("aclnn", "torch"))
    count = {"lstm": 3, "lstm_cell": 2}.get(operator, 1)
    torch.testing.assert_close(ours[:count], theirs[:count])


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.skipif(not has("jax"), reason="needs JAX")
def test_jax_computes_the_same() -> None:
    """In a process of its own: once JAX is loaded, every fork is warned of. PyTorch's LSTM runs its own forward."""
    code = "from tests.bench.test_providers import *\nfor name, shape in SHAPES: agree(name, shape, 'aclnn', 'jax')\n"
    code += "agree('lstm', {'size': [3, 2, 4, 5]}, 'torch', 'jax')"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
