"""The same for tensors of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import aclnn
from tests.runtime.test_replay import G, X, elu, flat, lstm, remembered


@pytest.fixture(autouse=True)
def _afresh() -> None:
    aclnn.cache_clear()


@pytest.mark.torch
def test_torch_in_torch_out() -> None:
    import torch

    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        g, x = torch.from_numpy(G).to(dtype), torch.from_numpy(X).to(dtype).requires_grad_()
        results = [elu(g, x=x) for _ in range(3)]
        assert all(type(r) is torch.Tensor and r.dtype is dtype and not r.requires_grad for r in results)
        assert torch.equal(results[0], results[1])
        assert torch.equal(results[0], results[2])
    assert isinstance(elu(G, x=torch.from_numpy(X)), torch.Tensor)
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="layout"):
            elu(torch.from_numpy(G).to_sparse())
        parameter = torch.nn.Parameter(torch.from_numpy(X))
        assert torch.equal(elu(torch.from_numpy(G), x=parameter), elu(torch.from_numpy(G), x=torch.from_numpy(X)))


@pytest.mark.torch
def test_parameters_are_short_and_stay_resizable() -> None:
    import torch

    x = torch.nn.Parameter(torch.from_numpy(X).clone())
    for _ in range(3):
        elu(torch.from_numpy(G), x=x)
    assert remembered() == 1
    x.untyped_storage().resize_(0)


@pytest.mark.torch
def test_memory_that_was_freed_or_negated_is_seen_every_time() -> None:
    import torch

    size = 4 * X.itemsize
    for _ in range(2):
        for left in (0, size - 1):
            x = torch.from_numpy(X).clone()
            elu(torch.from_numpy(G), x=x)
            x.untyped_storage().resize_(left)
            with pytest.raises(aclnn.AclnnError, match="cannot be read"):
                elu(torch.from_numpy(G), x=x)
        with pytest.raises(aclnn.AclnnError, match="lazily conjugated or negated"):
            elu(torch.from_numpy(G), x=torch._neg_view(torch.from_numpy(X)))
    whole = torch.zeros(4, 2)
    assert elu(torch.from_numpy(G), x=whole[2:]).shape == (2, 2)
    assert elu(torch.zeros(0, 2), x=torch.zeros(0, 2)).shape == (0, 2)


@pytest.mark.torch
def test_what_only_looks_like_a_remembered_tensor_is_refused_or_copied() -> None:
    import torch

    g, x = torch.from_numpy(G), torch.from_numpy(X)
    expected = elu(g, x=x)
    off = torch.frombuffer(bytearray(1 + 4 * X.itemsize), dtype=torch.float32, offset=1).view(2, 2)
    off.copy_(x)
    for _ in range(2):
        with pytest.raises(aclnn.AclnnError, match="cannot be read"):
            elu(torch._efficientzerotensor((2, 2)), x=x)  # has a size but no address
        with pytest.raises(aclnn.AclnnError, match="cannot be read"):
            torch.vmap(lambda one: elu(one, x=one))(torch.stack([x, x]))
        assert torch.equal(elu(g, x=off), expected)
    assert remembered() == 1


@pytest.mark.torch
def test_lists_of_torch_tensors() -> None:
    import torch

    expected = [a.tobytes() for a in flat(lstm())]
    for _ in range(2):
        assert [t.numpy().tobytes() for t in flat(lstm(torch.from_numpy))] == expected
    mixed = lstm(params=[torch.from_numpy(np.linspace(-1, k, 16).astype(np.float32).reshape(8, 2)) for k in range(2)])
    assert all(isinstance(t, torch.Tensor) for t in flat(mixed))
    assert [t.numpy().tobytes() for t in flat(mixed)] == expected
