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


def agree(operator: str, shape: dict[str, Any], first: str, second: str) -> None:
    """The results of two providers, with the tolerances of PyTorch."""
    import torch

    bench: Any = importlib.import_module(f"benchmarks.bench_{operator}")
    calls = made(bench.makers(shape, FLOAT32, True), (first, second))
    results = [calls[name]() for name in (first, second)]
    ours, theirs = ([torch.from_numpy(a) for a in _arrays(result)] for result in results)
    torch.testing.assert_close(ours, theirs)


def _arrays(result: Any) -> list[np.ndarray]:
    arrays = result if isinstance(result, tuple | list) else [result]
    return [np.from_dlpack(a.detach() if hasattr(a, "detach") else a).copy() for a in arrays]


@pytest.mark.torch
@pytest.mark.parametrize(("operator", "shape"), SHAPES)
def test_pytorch_computes_the_same(operator: str, shape: dict[str, Any]) -> None:
    agree(operator, shape, "aclnn", "torch")


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.skipif(not has("jax"), reason="needs JAX")
def test_jax_computes_the_same() -> None:
    """In a process of its own: once JAX is loaded, every fork is warned of. PyTorch's LSTM runs its own forward."""
    code = "from tests.bench.test_providers import *\nfor name, shape in SHAPES: agree(name, shape, 'aclnn', 'jax')\n"
    code += "agree('lstm', {'size': [3, 2, 4, 5]}, 'torch', 'jax')"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
