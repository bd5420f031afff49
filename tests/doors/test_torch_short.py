"""Short ways through PyTorch: as little as possible between a call and its kernel, and the same as the long ways."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import aclnn  # noqa: E402
import aclnn.torch  # noqa: E402
from aclnn.runtime.call_cache import call_cache  # noqa: E402

pytestmark = pytest.mark.torch

X = torch.tensor([[-2.0, -0.5], [0.25, 1.5]])
G = torch.tensor([[1.0, 2.0], [3.0, -4.0]])


def entered(call: Any) -> int:
    """How many functions of Python the second call like this enters."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    call()
    call()
    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 1  # the call that is counted


def backward() -> Any:
    return torch.ops.aclnn.elu_backward.default(G, 1.5, 1.0, 1.0, False, X)


def test_a_plain_call_goes_through_the_dispatcher_once() -> None:
    assert torch.equal(backward(), torch.ops.aten.elu_backward.default(G, 1.5, 1.0, 1.0, False, X))
    assert entered(backward) <= entered(lambda: aclnn.elu_backward(G, 1.5, 1.0, 1.0, False, X)) + 2


def test_what_watches_sees_calls_though_plain_ones_were_made_before() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    for _ in range(3):
        expected = backward()
    with Watching():
        watched = backward()
    assert torch.equal(watched, expected)
    assert seen == ["aclnn::elu_backward"]
    graph = make_fx(lambda g, x: torch.ops.aclnn.elu_backward.default(g, 1.5, 1.0, 1.0, False, x))(G, X)
    assert "aclnn.elu_backward" in graph.code
    with torch._subclasses.FakeTensorMode() as mode:
        fake = torch.ops.aclnn.elu_backward.default(
            *map(mode.from_tensor, (G,)), 1.5, 1.0, 1.0, False, torch.empty(2, 2)
        )
    assert isinstance(fake, torch._subclasses.FakeTensor)
    with torch.profiler.profile() as profile:
        backward()
    assert "aclnn::elu_backward" in {event.key for event in profile.key_averages()}


def test_gradients_come_though_plain_calls_were_made_before() -> None:
    weight = torch.linspace(-1, 1, 6).reshape(3, 2)
    for _ in range(3):
        torch.ops.aclnn.elu.default(X)
    x = X.clone().requires_grad_()
    torch.ops.aclnn.elu.default(x).backward(G)
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.ops.aten.elu_backward.default(G, 1.0, 1.0, 1.0, False, X))
    with torch.no_grad():
        assert not torch.ops.aclnn.elu.default(x).requires_grad
    with torch.inference_mode():
        assert torch.ops.aclnn.elu.default(X).is_inference()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        image, kernel = torch.ones(1, 2, 4, 4), weight[:, :, None, None].clone()
        args = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        assert torch.ops.aclnn.convolution.default(image, kernel, None, *args).dtype is torch.bfloat16
    assert torch.ops.aclnn.convolution.default(image, kernel, None, *args).dtype is torch.float32


def test_a_changed_tensor_that_autograd_saved_is_noticed() -> None:
    x = X.clone().requires_grad_()
    for _ in range(3):
        torch.ops.aclnn.elu_.default(X.clone())
    y = x * 1.0
    z = (y * y).sum()
    with torch.no_grad():
        torch.ops.aclnn.elu_.default(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


WITHOUT_NAMES = """
import sys, types
import torch
import torch.library
{removal}
import aclnn.torch
from aclnn.torch import direct
torch.manual_seed(0)
model = aclnn.torch.Conv2d(2, 3, 3), aclnn.torch.ELU(), aclnn.torch.LSTM(5, 4)
x = torch.randn(2, 2, 6, 7, requires_grad=True)
y = model[1](model[0](x))
z, _ = model[2](y.flatten(0, 2))
z.sum().backward()
print(x.grad.double().abs().sum().item(), torch.ops.aclnn.elu.default(x.detach()).double().sum().item())
"""
REMOVALS = {
    "nothing": "",
    "the dispatcher's sets": "del torch._C._dispatch_tls_local_include_set",
    "the profiler": "del torch._C._autograd._profiler_enabled",
    "register_autograd's parts": "sys.modules['torch._library.autograd'] = types.ModuleType('none')",
    "transforms": "del torch._C._functorch.get_interpreter_stack",
    "the comparison of tensors": "del torch._C._dynamo.guards.TensorGuards",
}


@pytest.fixture(scope="module")
def with_names() -> str:
    return said_without("")


def said_without(removal: str) -> str:
    program = WITHOUT_NAMES.replace("{removal}", removal)
    ended = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("removal", REMOVALS.values(), ids=REMOVALS.keys())
def test_private_names_of_pytorch_may_be_missing(removal: str, with_names: str) -> None:
    assert said_without(removal) == with_names


def convolution() -> Any:
    g, x, w = torch.randn(2, 16, 14, 14), torch.randn(2, 16, 14, 14), torch.randn(16, 16, 3, 3)
    window = ([16], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
    return lambda: aclnn.convolution_backward(g, x, w, *window)


def lstm(dtype: Any = torch.float16) -> Any:
    def drawn(*shape: int) -> Any:
        return (torch.randn(*shape) / 4).to(dtype)

    flags = {"has_bias": True, "num_layers": 1, "bidirectional": False, "batch_first": False}
    x, states = drawn(16, 8, 32), [drawn(1, 8, 32), drawn(1, 8, 32)]
    params = [drawn(128, 32), drawn(128, 32), drawn(128), drawn(128)]
    lists = aclnn.lstm(x, params, states, None, train=True, **flags)[3:]
    grads = drawn(16, 8, 32), drawn(1, 8, 32), drawn(1, 8, 32)
    return lambda: aclnn.lstm_backward(x, states, params, *grads, *lists, None, **flags)


CALLS = {"convolution": (convolution, 20), "lstm float16": (lstm, 34)}


@pytest.mark.parametrize(("make", "most"), [(convolution, 60), (lstm, 150)], ids=["convolution", "lstm float16"])
def test_a_whole_call_enters_few_functions(make: Any, most: int) -> None:
    """With its kernel: planning is done, and launching is a few lines for every loop."""
    pytest.importorskip("numba")
    aclnn.cache_clear()
    assert entered(make()) <= most
    aclnn.cache_clear()


@pytest.mark.parametrize(("make", "most"), CALLS.values(), ids=CALLS.keys())
def test_before_and_after_the_kernel_little_is_entered(make: Any, most: int) -> None:
    """What a call with torch tensors enters besides its kernel, when its like was made before."""
    aclnn.cache_clear()
    call = make()
    call()
    cached = max(call_cache._calls.values(), key=lambda one: one.used)
    assert cached.replay is not None
    cached.idle[:] = [lambda *given: None]
    assert entered(call) <= most
    aclnn.cache_clear()


def test_results_are_those_of_arrays() -> None:
    call = lstm(torch.float32)
    first = call()
    assert all(torch.equal(a, b) for a, b in zip(first[:3], call()[:3], strict=True))
    numbers = aclnn.elu_backward(G.numpy(), 1.5, 1.0, 1.0, False, X.numpy())
    assert np.array_equal(backward().numpy(), numbers)
