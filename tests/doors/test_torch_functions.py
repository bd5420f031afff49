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


def stacked(result: tuple[Tensor, ...]) -> Tensor:
    """Several results as one, so that a loss weighs them all."""
    return torch.cat([r.reshape(-1) for r in result])


def convolutions(transposed: bool, extra: int) -> Pair:
    attributes = ([2, 1], [1, 0], [1, 2], transposed, [extra, 0], 2)
    return Pair(
        lambda x, w, b: aclnn_torch.convolution(x, w, b, *attributes),
        lambda x, w, b: torch.convolution(x, w, b, *attributes),
        ((1, 4, 3, 3), (4, 2, 3, 2), (4,)) if transposed else ((2, 4, 4, 3), (4, 2, 3, 2), (4,)),
    )


def cell_of_torch(gates: Tensor, hidden: Tensor, cx: Tensor, *biases: Tensor) -> Tensor:
    i, f, g, o = (gates + hidden + sum(biases)).chunk(4, 1)
    cy = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    return stacked((o.sigmoid() * cy.tanh(), cy))


def lstms(layers: int, bidirectional: bool, has_bias: bool, lengths: list[int] | None) -> Pair:
    """T 3, B 2, I 1, H 2; `lengths` of the two sequences."""
    directions = 1 + bidirectional
    state = (layers * directions, 2, 2)
    shapes: list[tuple[int, ...]] = [(3, 2, 1), state, state]
    for layer in range(layers):
        shapes += [(8, 2 * directions if layer else 1), (8, 2), *([(8,), (8,)] if has_bias else [])] * directions
    sizes = None if lengths is None else torch.tensor([sum(n > t for n in lengths) for t in range(3)])
    attributes = {"has_bias": has_bias, "num_layers": layers, "bidirectional": bidirectional}

    def ours(x: Tensor, h: Tensor, c: Tensor, *params: Tensor) -> Tensor:
        return stacked(aclnn_torch.lstm(x, params, (h, c), sizes, **attributes))

    def theirs(x: Tensor, h: Tensor, c: Tensor, *params: Tensor) -> Tensor:
        if lengths is None:
            return stacked(torch.lstm(x, (h, c), params, has_bias, layers, 0.0, False, bidirectional, False))
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths))
        y, *states = torch.lstm(
            packed.data, packed.batch_sizes, (h, c), params, has_bias, layers, 0.0, False, bidirectional
        )
        padded = torch.nn.utils.rnn.PackedSequence(y, packed.batch_sizes)
        return stacked((torch.nn.utils.rnn.pad_packed_sequence(padded)[0], *states))

    return Pair(ours, theirs, tuple(shapes))


PAIRS |= {
    "convolution": convolutions(False, 0),
    "transposed convolution": convolutions(True, 1),
    "convolution without bias": Pair(
        lambda x, w: aclnn_torch.convolution(x, w, None, [1], [2], [1], False, [0], 1),
        lambda x, w: functional.conv1d(x, w, padding=2),
        ((1, 2, 4), (3, 2, 3)),
    ),
    "conv_tbc": Pair(
        lambda x, w, b: aclnn_torch.conv_tbc(x, w, b, 1),
        lambda x, w, b: torch.conv_tbc(x, w, b, 1),
        ((4, 2, 2), (3, 2, 3), (3,)),
    ),
    "lstm": lstms(2, True, True, None),
    "lstm of variable length": lstms(1, True, False, [3, 1]),
    "lstm cell": Pair(
        lambda *x: stacked(aclnn_torch.thnn_fused_lstm_cell(*x)),
        cell_of_torch,
        ((3, 8), (3, 8), (3, 2), (8,), (8,)),
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
    inputs = pair.inputs(torch.float64)
    with aclnn.product("cpu"):
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
def test_the_short_way_gives_the_bits_of_the_dispatcher(pair: Pair) -> None:
    """What watches sees the operators, forwards and backwards; what does not changes nothing."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = set()

    class Watching(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(str(func))
            return func(*args, **(kwargs or {}))

    inputs = pair.inputs()
    short = [pair.ours(*inputs), *gradients(pair.ours, inputs)]
    with Watching():
        watched = [pair.ours(*inputs), *gradients(pair.ours, inputs)]
    assert all(torch.equal(a, b) for a, b in zip(short, watched, strict=True))
    assert {"_backward" in name for name in seen if name.startswith("aclnn.")} == {True, False}


@every
def test_the_profiler_sees_the_operators(pair: Pair) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        gradients(pair.ours, pair.inputs())
    names = {event.key for event in profile.key_averages() if event.key.startswith("aclnn::")}
    assert any(name.endswith("_backward") for name in names)
    assert any(not name.endswith("_backward") for name in names)


@every
@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # PyTorch's forward mode uses it
def test_torch_func_is_refused_with_a_sentence(pair: Pair) -> None:
    inputs = tuple(x.detach() for x in pair.inputs())
    with pytest.raises(
        aclnn.AclnnError, match=r"is not for torch\.func\.grad, vjp or jacrev; use torch\.autograd\.grad"
    ):
        torch.func.grad(lambda *x: pair.ours(*x).sum())(*inputs)
    with pytest.raises(aclnn.AclnnError, match="has no forward-mode derivative"):
        torch.func.jvp(pair.ours, inputs, inputs)
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(x, x) for x in inputs]
        with pytest.raises(aclnn.AclnnError, match="has no forward-mode derivative"):
            pair.ours(*duals)
        assert torch.equal(pair.ours(*inputs), pair.ours(*pair.inputs()))


def test_vmap_computes_sample_by_sample() -> None:
    x = torch.randn(3, 2, 4)
    assert torch.equal(torch.vmap(aclnn_torch.elu)(x), aclnn_torch.elu(x))


@every
def test_export(pair: Pair) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *x: Tensor) -> Tensor:
            return pair.ours(*x)

    inputs = [x.detach() for x in pair.inputs()]
    exported = torch.export.export(Module(), tuple(inputs))
    assert "aclnn" in str(exported.graph)
    assert torch.equal(exported.module()(*inputs), pair.ours(*inputs))


@pytest.mark.parametrize("name", PAIRS)
def test_autocast_computes_in_bfloat16_what_pytorch_would(name: str) -> None:
    """Bit for bit as if the inputs had been cast by hand; ELU computes in what it gets."""
    ours, inputs = PAIRS[name].ours, PAIRS[name].inputs()

    def by_hand(*x: Tensor) -> Tensor:
        return ours(*x) if "elu" in name else ours(*(t.bfloat16() for t in x))

    with aclnn.product("cpu"):
        with torch.autocast("cpu", torch.bfloat16):
            result, grads = ours(*inputs), gradients(ours, inputs)
        assert torch.equal(result, by_hand(*inputs))
        assert result.dtype == (torch.float32 if "elu" in name else torch.bfloat16)
        for a, b in zip(grads, gradients(by_hand, inputs), strict=True):
            assert torch.equal(a, b)
            assert a.dtype == torch.float32


def test_autocast_stays_in_float32_where_the_product_does_not_take_bfloat16() -> None:
    pair = PAIRS["lstm"]
    with aclnn.product("A2"), torch.autocast("cpu", torch.bfloat16):
        assert pair.ours(*pair.inputs(torch.bfloat16)).dtype == torch.float32


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
