"""torch.jit.trace of our modules: a trace is right for other batches than the one it was made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
door = pytest.importorskip("aclnn.torch")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning"),
]

Shape = tuple[int, ...]


def swapped() -> Any:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ELU())
    door.swap(model)
    return model


MODULES: dict[str, tuple[Callable[[], Any], Shape, Shape]] = {
    # the module, the input it is traced with, another one
    "ELU": (lambda: door.ELU(0.5), (2, 3), (5, 4)),
    "Conv1d": (lambda: door.Conv1d(3, 4, 3), (2, 3, 9), (5, 3, 11)),
    "Conv2d": (lambda: door.Conv2d(3, 4, 3, padding=1), (2, 3, 9, 9), (5, 3, 8, 7)),
    "Conv2d, reflected": (
        lambda: door.Conv2d(3, 4, 3, padding="same", padding_mode="reflect"),
        (2, 3, 9, 9),
        (5, 3, 8, 7),
    ),
    "Conv3d": (lambda: door.Conv3d(3, 4, 3), (2, 3, 5, 5, 5), (4, 3, 6, 5, 7)),
    "ConvTranspose1d": (lambda: door.ConvTranspose1d(3, 4, 3), (2, 3, 9), (5, 3, 11)),
    "ConvTranspose2d": (lambda: door.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 5, 5), (5, 3, 4, 6)),
    "ConvTranspose3d": (lambda: door.ConvTranspose3d(3, 4, 3), (2, 3, 4, 4, 4), (4, 3, 5, 3, 4)),
    "ConvTBC": (lambda: door.ConvTBC(3, 4, 3), (6, 2, 3), (7, 5, 3)),
    "LSTM": (lambda: door.LSTM(3, 4), (6, 5, 3), (8, 7, 3)),
    "LSTM, without a batch": (lambda: door.LSTM(3, 4), (6, 3), (8, 3)),
    "LSTM, all of it": (
        lambda: door.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
        (5, 6, 3),
        (7, 8, 3),
    ),
    "LSTMCell": (lambda: door.LSTMCell(3, 4), (5, 3), (7, 3)),
    "LSTMCell, without a batch": (lambda: door.LSTMCell(3, 4), (3,), (3,)),
    "a swapped model": (swapped, (2, 3, 5, 5), (4, 3, 6, 7)),
}


def all_grads(module: Any, of: Any, x: Any) -> list[Any]:
    found = module(x)
    while isinstance(found, tuple):
        found = found[0]
    return list(torch.autograd.grad((found * torch.arange(found.numel()).view_as(found)).sum(), list(of.parameters())))


@pytest.mark.parametrize("with_grad", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_a_trace_is_right_for_another_batch(name: str, with_grad: bool) -> None:
    make, first, second = MODULES[name]
    torch.manual_seed(0)
    module, x = make(), torch.randn(second)
    with torch.set_grad_enabled(with_grad):
        traced = torch.jit.trace(module, (torch.randn(first),), check_trace=True)
    torch.testing.assert_close(traced(x), module(x), rtol=0, atol=0)
    if list(module.parameters()):
        torch.testing.assert_close(all_grads(traced, module, x), all_grads(module, module, x), rtol=0, atol=0)
    with torch.no_grad():
        torch.testing.assert_close(traced(x), module(x), rtol=0, atol=0)


@pytest.mark.parametrize("kind", [door.LSTM, door.LSTMCell])
def test_states_may_be_given_to_a_trace(kind: Any) -> None:
    torch.manual_seed(0)
    module = kind(3, 4)
    rows: Callable[[int], Shape] = (lambda n: (1, n, 4)) if kind is door.LSTM else (lambda n: (n, 4))

    def given(batch: int) -> tuple[Any, Any]:
        x = torch.randn(6, batch, 3) if kind is door.LSTM else torch.randn(batch, 3)
        return x, (torch.randn(rows(batch)), torch.randn(rows(batch)))

    traced, other = torch.jit.trace(module, given(5), check_trace=True), given(7)
    torch.testing.assert_close(traced(*other), module(*other), rtol=0, atol=0)
