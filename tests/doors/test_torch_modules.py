"""Drop-in modules: PyTorch's arguments, names, numbers and gradients; and putting them into a model."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

import aclnn

torch = pytest.importorskip("torch")
nn = torch.nn
aclnn_torch = pytest.importorskip("aclnn.torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths"),  # PyTorch's, of its own copy
]

MODULES: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("ELU", {"alpha": 1.3}, (3, 4)),
    ("ELU", {"inplace": True}, (3, 4)),
    ("Conv1d", {"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2, "groups": 2}, (2, 4, 9)),
    ("Conv1d", {"in_channels": 2, "out_channels": 3, "kernel_size": 4, "padding": "same", "bias": False}, (2, 2, 9)),
    ("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": (3, 2), "dilation": 2, "padding": 1}, (2, 3, 6, 7)),
    ("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3, "padding": "same"}, (2, 3, 6, 7)),
    ("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3, "padding": "valid"}, (3, 6, 7)),
    ("Conv2d", {"in_channels": 2, "out_channels": 2, "kernel_size": 3, "padding": (2, 1), "padding_mode": "circular"},
     (2, 2, 6, 7)),
    ("Conv2d", {"in_channels": 2, "out_channels": 2, "kernel_size": 3, "padding": 1, "padding_mode": "reflect"},
     (2, 2, 6, 7)),
    ("Conv3d", {"in_channels": 2, "out_channels": 3, "kernel_size": 2, "padding": (1, 0, 2)}, (2, 2, 3, 4, 5)),
    ("ConvTranspose1d", {"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2, "groups": 2}, (2, 4, 5)),
    ("ConvTranspose2d", {"in_channels": 2, "out_channels": 3, "kernel_size": 3, "stride": 2, "output_padding": 1},
     (2, 2, 3, 4)),
    ("ConvTranspose2d", {"in_channels": 2, "out_channels": 3, "kernel_size": 3, "dilation": 2}, (2, 3, 4)),
    ("ConvTranspose3d", {"in_channels": 2, "out_channels": 3, "kernel_size": 2, "padding": 1}, (1, 2, 3, 3, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 4}, (5, 2, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 4, "num_layers": 2, "bidirectional": True, "batch_first": True},
     (2, 5, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 4, "num_layers": 3, "dropout": 0.5, "bidirectional": True}, (5, 2, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 2, "num_layers": 2, "dropout": 0.5, "batch_first": True}, (5, 2, 3)),
    ("LSTM", {"input_size": 3, "hidden_size": 4, "bias": False}, (5, 3)),
    ("LSTMCell", {"input_size": 3, "hidden_size": 4}, (2, 3)),
    ("LSTMCell", {"input_size": 3, "hidden_size": 4, "bias": False}, (3,)),
]  # fmt: skip
every = pytest.mark.parametrize(("name", "given", "shape"), MODULES, ids=[f"{n} {g}" for n, g, _ in MODULES])


def pair(name: str, given: dict[str, Any], dtype: Any = torch.float64) -> tuple[Any, Any]:
    """A module of ours and PyTorch's own with the same parameters."""
    torch.manual_seed(0)
    options = {} if name == "ELU" else {"dtype": dtype}
    ours, theirs = getattr(aclnn_torch, name)(**given, **options), getattr(nn, name)(**given, **options)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def run(module: Any, *inputs: Any) -> list[Any]:
    """Results, then the gradients of inputs and parameters, of a loss that weighs every element differently."""
    torch.manual_seed(1)  # dropout draws the same
    given = [x.clone().requires_grad_() for x in inputs]
    results = flat(module(*(x * 1 for x in given)))
    weights = [torch.linspace(0.5, 1.5, r.numel(), dtype=r.dtype).reshape(r.shape) for r in results]
    loss = sum((r * w).sum() for r, w in zip(results, weights, strict=True))
    return [*results, *torch.autograd.grad(loss, [*given, *module.parameters()])]


def flat(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in flat(part)]


def draw(*shape: int, dtype: Any = torch.float64, seed: int = 2) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@every
@pytest.mark.parametrize("train", [True, False])
def test_numbers_and_gradients_are_pytorchs(name: str, given: dict[str, Any], shape: Any, train: bool) -> None:
    ours, theirs = pair(name, given)
    x = draw(*shape)
    with aclnn.product("cpu"):
        torch.testing.assert_close(run(ours.train(train), x), run(theirs.train(train), x))


@every
def test_float32_under_the_default_product(name: str, given: dict[str, Any], shape: Any) -> None:
    """Each within float32 rounding of PyTorch's float64."""
    ours, theirs = pair(name, given, torch.float32)
    x = draw(*shape, dtype=torch.float32)
    exact = run(theirs.double().eval(), x.double())
    torch.testing.assert_close(run(ours.eval(), x), [e.float() for e in exact])


@every
def test_state_dict_repr_and_constructor_are_pytorchs(name: str, given: dict[str, Any], shape: Any) -> None:
    ours, theirs = pair(name, given)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    torch.manual_seed(3)
    fresh = getattr(aclnn_torch, name)(**given)
    torch.manual_seed(3)
    for a, b in zip(fresh.parameters(), getattr(nn, name)(**given).parameters(), strict=True):
        assert torch.equal(a, b)


@every
def test_saved_and_copied_modules_compute_the_same(name: str, given: dict[str, Any], shape: Any) -> None:
    ours, _ = pair(name, given)
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    x = draw(*shape)
    with aclnn.product("cpu"):
        expected = flat(ours.eval()(x.clone()))
        for other in (torch.load(file, weights_only=False).eval(), copy.deepcopy(ours)):
            assert all(torch.equal(a, b) for a, b in zip(flat(other(x.clone())), expected, strict=True))


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"num_layers": 2, "dropout": 0.5}], ids=str)
@pytest.mark.parametrize("with_states", [False, True])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_packed_sequences(options: dict[str, Any], with_states: bool, is_sorted: bool) -> None:
    given = {"input_size": 3, "hidden_size": 2, "bidirectional": True, **options}
    ours, theirs = pair("LSTM", given)
    lengths = [4, 3, 1] if is_sorted else [1, 4, 3]
    x = draw(3, 4, 3) if options.get("batch_first") else draw(4, 3, 3)
    count = 2 * options.get("num_layers", 1)
    states = (draw(count, 3, 2, seed=5), draw(count, 3, 2, seed=6)) if with_states else None

    def over(module: Any) -> Any:
        def forward(x: Any) -> Any:
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, options.get("batch_first", False), is_sorted)
            y, last = module(packed, states)
            return nn.utils.rnn.pad_packed_sequence(y)[0], last

        forward.parameters = module.parameters  # type: ignore[attr-defined]
        return forward

    with aclnn.product("cpu"):
        torch.testing.assert_close(run(over(ours), x), run(over(theirs), x))


def test_states_of_an_unbatched_lstm_and_cell() -> None:
    x, h, c = draw(5, 3), draw(1, 4, seed=5), draw(1, 4, seed=6)
    with aclnn.product("cpu"):
        ours, theirs = pair("LSTM", {"input_size": 3, "hidden_size": 4})
        torch.testing.assert_close(flat(ours(x, (h, c))), flat(theirs(x, (h, c))))
        ours, theirs = pair("LSTMCell", {"input_size": 3, "hidden_size": 4})
        torch.testing.assert_close(flat(ours(x[0], (h[0], c[0]))), flat(theirs(x[0], (h[0], c[0]))))


def test_the_output_size_of_a_transposed_convolution() -> None:
    ours, theirs = pair("ConvTranspose2d", {"in_channels": 2, "out_channels": 3, "kernel_size": 3, "stride": 3})
    x = draw(2, 2, 3, 4)
    with aclnn.product("cpu"):
        for size in ([9, 12], [11, 13], (2, 3, 10, 14)):
            torch.testing.assert_close(ours(x, size), theirs(x, size))
        with pytest.raises(ValueError, match="requested an output size"):
            ours(x, [20, 20])


def test_conv_tbc_is_torchs_function() -> None:
    torch.manual_seed(0)
    module = aclnn_torch.ConvTBC(3, 4, kernel_size=3, padding=1, dtype=torch.float64)
    x = draw(5, 2, 3)
    with aclnn.product("cpu"):
        torch.testing.assert_close(module(x), torch.conv_tbc(x, module.weight, module.bias, 1))
    assert list(module.state_dict()) == ["weight", "bias"]
    assert repr(module) == "ConvTBC(3, 4, kernel_size=3, padding=1)"


def test_parametrized_weights_are_seen() -> None:
    with aclnn.product("cpu"):
        for name, given, which, shape in (
            ("Conv2d", {"in_channels": 3, "out_channels": 4, "kernel_size": 3}, "weight", (2, 3, 6, 7)),
            ("LSTM", {"input_size": 3, "hidden_size": 4}, "weight_hh_l0", (5, 2, 3)),
        ):
            ours, theirs = pair(name, given)
            for module in (ours, theirs):
                nn.utils.parametrizations.weight_norm(module, which)
            x = draw(*shape)
            torch.testing.assert_close(run(ours, x), run(theirs, x))


def test_projections_are_refused() -> None:
    with pytest.raises(aclnn.AclnnError, match="aclnnLSTM has no projections; proj_size is 2 but must be 0"):
        aclnn_torch.LSTM(3, 4, proj_size=2)


class Classifier(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ELU(), nn.Conv2d(4, 4, 3, stride=2), nn.ELU())
        self.memory = nn.LSTM(12, 6, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        y = self.features(x).permute(0, 2, 1, 3).flatten(2)
        return self.head(self.memory(y)[0][:, -1])


def test_swap_says_what_it_did_and_changes_nothing_else() -> None:
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = draw(2, 1, 9, 8, dtype=torch.float32)
    expected = model(x)
    report = aclnn_torch.swap(model)
    assert [m.name for m in report.replaced] == ["features.0", "features.1", "features.2", "features.3", "memory"]
    assert [(m.name, m.reason) for m in report.left] == [("head", "there is no such operator")]
    assert str(report).splitlines()[0] == "replaced 5 modules, left 1 alone"
    assert type(model.memory) is aclnn_torch.LSTM
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert {id(p) for p in model.parameters()} == {id(p) for p in optimizer.param_groups[0]["params"]}
    result = model(x)
    torch.testing.assert_close(result, expected)
    aclnn_torch.swap_back(model)
    assert type(model.memory) is nn.LSTM
    assert torch.equal(model(x), expected)


def test_swap_leaves_alone_what_it_does_not_know() -> None:
    class Mine(nn.Conv2d):  # type: ignore[misc, name-defined]
        pass

    model = nn.ModuleList([Mine(1, 1, 1), nn.LSTM(2, 3, proj_size=1), nn.GRU(2, 2), nn.LazyConv1d(2, 1), nn.ELU()])
    model.append(nn.ConvTranspose1d(1, 1, 2, stride=1, dilation=3, output_padding=2))
    report = aclnn_torch.swap(model)
    assert [m.kind for m in report.replaced] == ["ELU"]
    assert [(m.kind, m.reason) for m in report.left] == [
        ("Mine", "it is a subclass of Conv2d and may compute something else"),
        ("LSTM", "aclnnLSTM has no projections (proj_size)"),
        ("GRU", "there is no such operator"),
        ("LazyConv1d", "it is a subclass of Conv1d and may compute something else"),
        ("ConvTranspose1d", "its output_padding is not below its stride, as aclnnConvolution asks"),
    ]
    assert aclnn_torch.swap(model).replaced == ()
    root = nn.ELU()
    aclnn_torch.swap(root)
    assert type(root) is aclnn_torch.ELU


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # Dynamo breaks at any nn.LSTM
def test_a_swapped_model_compiles_exports_and_checkpoints() -> None:
    torch.manual_seed(0)
    model = Classifier()
    aclnn_torch.swap(model)
    x = draw(2, 1, 9, 8, dtype=torch.float32)
    expected = model(x)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x), expected)
    torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), expected)
    recomputed = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
    assert torch.equal(recomputed, expected)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of PyTorch's compiler
def test_a_swapped_model_has_the_same_gradients_after_inductor() -> None:
    torch.manual_seed(0)
    model = Classifier()
    aclnn_torch.swap(model)
    x = draw(2, 1, 9, 8, dtype=torch.float32)
    torch._dynamo.reset()
    found = []
    for forward in (torch.compile(model), model):
        model.zero_grad()
        forward(x).square().sum().backward()
        found.append([p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(found[0], found[1])


def test_a_swapped_model_trains_under_autocast() -> None:
    torch.manual_seed(0)
    model = Classifier()
    aclnn_torch.swap(model)
    x, target = draw(4, 1, 9, 8, dtype=torch.float32), torch.tensor([0, 1, 2, 0])
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), target)
    loss.backward()
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in model.parameters())
