"""The operators as differentiable functions: PyTorch's gradients, and everything PyTorch does with a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import aclnn

torch = pytest.importorskip("torch")
functional = torch.nn.functional
aclnn_torch = pytest.importorskip("aclnn.torch")
pytestmark = pytest.mark.torch

Tensor = Any


class Pair(NamedTuple):
    """One function of tensors as we and as PyTorch compute it, and the shapes of the tensors."""

    ours: Callable[..., Tensor]
    theirs: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]

    def inputs(self, dtype: Any = torch.float32, seed: int = 0) -> list[Tensor]:
        made = torch.Generator().manual_seed(seed)
        return [torch.randn(s, generator=made, dtype=torch.float64).to(dtype).requires_grad_() for s in self.shapes]


PAIRS = {
    "elu": Pair(lambda x: aclnn_torch.elu(x, 1.3, 1.1, 0.7), lambda x: torch.ops.aten.elu(x, 1.3, 1.1, 0.7), ((3, 4),)),
    "elu in place": Pair(
        lambda x: aclnn_torch.elu(x * 1, 1.3, inplace=True), lambda x: functional.elu(x * 1, 1.3, inplace=True), ((5,),)
    ),
}
every = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


def gradients(function: Callable[..., Tensor], inputs: list[Tensor], **options: Any) -> tuple[Tensor, ...]:
    """Of a loss that weighs every element of the result differently."""
    result = function(*inputs)
    weights = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    return torch.autograd.grad((result * weights).sum(), inputs, **options)  # type: ignore[no-any-return]


@every
def test_gradcheck(pair: Pair) -> None:
    with aclnn.product("cpu"):
        assert torch.autograd.gradcheck(pair.ours, pair.inputs(torch.float64))


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_results_and_gradients_are_pytorchs(pair: Pair, dtype: Any) -> None:
    inputs = pair.inputs(dtype)
    with aclnn.product("cpu"):
        torch.testing.assert_close(pair.ours(*inputs), pair.theirs(*inputs))
        torch.testing.assert_close(gradients(pair.ours, inputs), gradients(pair.theirs, inputs))


@every
def test_backward_outside_the_block_of_its_product(pair: Pair) -> None:
    inputs = pair.inputs(torch.float64)
    with aclnn.product("cpu"):
        loss = pair.ours(*inputs).sum()
    loss.backward()
    assert all(x.grad.dtype == torch.float64 for x in inputs)


@every
def test_double_backward_says_that_it_is_not_supported(pair: Pair) -> None:
    inputs = pair.inputs()
    grads = gradients(lambda *x: pair.ours(*x) ** 2, inputs, create_graph=True)
    with pytest.raises(aclnn.AclnnError, match=r"has no derivative: double backward \(create_graph=True\) is not"):
        sum(g.sum() for g in grads).backward()


@every
def test_no_grad_makes_no_graph(pair: Pair) -> None:
    with torch.no_grad():
        assert pair.ours(*pair.inputs()).grad_fn is None
    with torch.inference_mode():
        assert not pair.ours(*(x.detach() for x in pair.inputs())).requires_grad


@every
def test_non_leaf_inputs_and_a_retained_graph(pair: Pair) -> None:
    inputs = pair.inputs()
    loss = pair.ours(*(x * 2 for x in inputs)).square().sum()
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    second = torch.autograd.grad(loss, inputs)
    theirs = torch.autograd.grad(pair.theirs(*(x * 2 for x in inputs)).square().sum(), inputs)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
    torch.testing.assert_close(first, theirs)


@every
def test_a_frozen_input_gets_no_gradient(pair: Pair) -> None:
    for frozen in range(len(pair.shapes)):
        inputs = pair.inputs()
        inputs[frozen].requires_grad_(False)
        if len(inputs) > 1:
            pair.ours(*inputs).sum().backward()
        assert inputs[frozen].grad is None
        assert all(x.grad is not None for i, x in enumerate(inputs) if i != frozen)


@every
def test_checkpointing(pair: Pair) -> None:
    from torch.utils.checkpoint import checkpoint

    inputs = pair.inputs()
    kept = gradients(pair.ours, inputs)
    recomputed = gradients(lambda *x: checkpoint(pair.ours, *x, use_reentrant=False), inputs)
    assert all(torch.equal(a, b) for a, b in zip(kept, recomputed, strict=True))


@every
def test_compile(pair: Pair) -> None:
    torch._dynamo.reset()
    inputs = pair.inputs()
    compiled = torch.compile(pair.ours, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*inputs), pair.ours(*inputs))
    for a, b in zip(gradients(compiled, inputs), gradients(pair.ours, inputs), strict=True):
        assert torch.equal(a, b)


@every
def test_export(pair: Pair) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *x: Tensor) -> Tensor:
            return pair.ours(*x)

    inputs = [x.detach() for x in pair.inputs()]
    exported = torch.export.export(Module(), tuple(inputs))
    assert "aclnn" in str(exported.graph)
    assert torch.equal(exported.module()(*inputs), pair.ours(*inputs))


@every
def test_autocast_to_bfloat16(pair: Pair) -> None:
    inputs = pair.inputs()
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = pair.ours(*inputs), pair.theirs(*inputs)
        grads = gradients(pair.ours, inputs)
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs)
    assert all(g.dtype == torch.float32 for g in grads)
    wide = gradients(pair.theirs, inputs)
    torch.testing.assert_close([g.bfloat16() for g in grads], [g.bfloat16() for g in wide])


@every
def test_many_threads_at_once(pair: Pair) -> None:
    from concurrent.futures import ThreadPoolExecutor

    expected = gradients(pair.ours, pair.inputs())
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: gradients(pair.ours, pair.inputs()), range(16)):
            assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_in_place_is_noticed_by_autograd() -> None:
    x = torch.randn(4, requires_grad=True)
    y = x.square()
    square = y.square()  # keeps y
    with torch.no_grad():
        assert aclnn_torch.elu(y, inplace=True) is y
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_float64_without_the_product_that_takes_it_is_refused_with_a_hint() -> None:
    with pytest.raises(aclnn.AclnnError, match="product cpu takes float64"):
        aclnn_torch.elu(torch.zeros(2, dtype=torch.float64))


def test_a_meta_tensor_has_shapes_only() -> None:
    y = aclnn_torch.elu(torch.empty(2, 3, device="meta"))
    assert (y.shape, y.device.type) == ((2, 3), "meta")
