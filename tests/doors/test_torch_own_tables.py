"""PyTorch's own tables of module and function cases, run on our modules.

What PyTorch's test templates ask beyond these is listed in NOT_RUN, with the reason; each shows as a skipped test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aclnn

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's tables need expecttest")
aclnn_torch = pytest.importorskip("aclnn.torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),  # of PyTorch's tables, not of what is tested here
]

NAMES = (
    "ELU",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LSTM",
    "LSTMCell",
)
NOT_RUN = {
    "test_gradgrad": "the backward operators have no derivative, and say so",
    "test_forward_ad": "there is no forward-mode derivative, and that is said",
    "test_vmap": "PyTorch calls the operators sample by sample; there is no batching rule to test",
    "test_cpu_gpu_parity, test_multiple_device_transfer": "the operators run on the CPU",
    "test_memory_format, layout of the result": "results are contiguous whatever the layout of the input; values agree",
    "complex dtypes": "no product takes them",
    "torch.jit.script": "TorchScript cannot compile Python operators; torch.compile and torch.export can",
    "lazy modules": "they become Conv modules on their first call; swap the model after it",
    "transposed convolutions with output_padding ≥ stride": "PyTorch takes it below dilation, the contract does not",
    "LSTM with proj_size": "aclnnLSTM has no projections; refused with a sentence",
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_list_what_is_not_run(lang: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / lang / "howto" / "torch.md").read_text(encoding="utf-8")
    *_, table = page.split("|---|---|\n")
    rows = dict(row.strip("| ").split(" | ") for row in table.strip().splitlines())
    assert list(rows) == list(NOT_RUN)
    assert lang == "zh" or rows == NOT_RUN


def module_info(name: str) -> Any:
    from torch.testing._internal.common_modules import module_db

    return next(info for info in module_db if info.module_cls is getattr(torch.nn, name))


def module_cases(name: str, dtype: Any, train: bool, seed: int = 0) -> Iterator[tuple[Any, Any, Any]]:
    """Our module, PyTorch's own with the same parameters, and the call."""
    torch.manual_seed(seed)
    info = module_info(name)
    made = {} if name == "ELU" else {"dtype": dtype}
    for case in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=train):
        built, call = case.constructor_input, case.forward_input
        if built.kwargs.get("proj_size") or call is None:
            continue
        theirs = getattr(torch.nn, name)(*built.args, **built.kwargs, **made).train(train)
        ours = getattr(aclnn_torch, name)(*built.args, **built.kwargs, **made).train(train)
        ours.load_state_dict(theirs.state_dict())
        yield ours, theirs, call


def leaves(value: Any) -> list[Any]:
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def evaluated(module: Any, call: Any) -> tuple[list[Any], list[Any]]:
    """Results, and the gradients of everything that has one, of a loss that weighs every element differently."""
    torch.manual_seed(1)
    given = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), (call.args, call.kwargs))
    inputs = [t.requires_grad_() for t in leaves(given)]
    copies = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t * 1, given)  # a leaf may not change in place
    results = leaves(module(*copies[0], **copies[1]))
    weighed = [(r * torch.linspace(0.5, 1.5, r.numel(), dtype=r.dtype).reshape(r.shape)).sum() for r in results]
    return results, list(torch.autograd.grad(sum(weighed), [*inputs, *module.parameters()], allow_unused=True))


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_every_case_has_pytorchs_results_and_gradients(name: str, train: bool) -> None:
    with aclnn.product("cpu"):
        count = 0
        for ours, theirs, call in module_cases(name, torch.float64, train):
            torch.testing.assert_close(evaluated(ours, call), evaluated(theirs, call))
            count += 1
    assert count >= 2


@pytest.mark.parametrize("name", NAMES)
def test_float32_and_the_reference_functions(name: str) -> None:
    info = module_info(name)
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        made = {} if name == "ELU" else {"dtype": dtype}
        cases = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=False)
        for case in cases:
            built, call = case.constructor_input, case.forward_input
            if case.reference_fn is None or call is None or built.kwargs.get("proj_size"):
                continue
            ours = getattr(aclnn_torch, name)(*built.args, **built.kwargs, **made).eval()
            with aclnn.product("cpu"):
                found = ours(*call.args, **call.kwargs)
                expected = case.reference_fn(ours, *call.args, **call.kwargs)
            torch.testing.assert_close(leaves(found), leaves(expected))


@pytest.mark.parametrize("name", NAMES)
def test_non_contiguous_and_channels_last_inputs(name: str) -> None:
    from torch.testing._internal.common_utils import noncontiguous_like

    with aclnn.product("cpu"):
        for ours, _, call in module_cases(name, torch.float64, train=False):
            expected = leaves(ours(*torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, call.args)))
            spread = torch.utils._pytree.tree_map_only(torch.Tensor, noncontiguous_like, call.args)
            torch.testing.assert_close(leaves(ours(*spread)), expected)
            if name.endswith("2d") and leaves(call.args)[0].dim() == 4:
                last = leaves(call.args)[0].to(memory_format=torch.channels_last)
                torch.testing.assert_close(leaves(ours.to(memory_format=torch.channels_last)(last)), expected)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_gradcheck_of_every_case(name: str) -> None:
    with aclnn.product("cpu"):
        for ours, _, call in module_cases(name, torch.float64, train=False):
            params = dict(ours.named_parameters())
            tensors, spec = torch.utils._pytree.tree_flatten(call.args)
            inputs = [t.detach().requires_grad_() for t in tensors if isinstance(t, torch.Tensor)]

            def run(
                *values: Any, ours: Any = ours, spec: Any = spec, params: Any = params, n: int = len(inputs)
            ) -> Any:
                given = torch.utils._pytree.tree_unflatten([v * 1 for v in values[:n]], spec)
                named = dict(zip(params, values[n:], strict=True))
                return tuple(leaves(torch.func.functional_call(ours, named, given)))

            assert torch.autograd.gradcheck(run, (*inputs, *params.values()), fast_mode=True)


@pytest.mark.parametrize("name", NAMES)
def test_what_pytorch_refuses_is_refused(name: str) -> None:
    """The sentence is ours where the operator says it, PyTorch's where the module does."""
    info = module_info(name)
    if info.module_error_inputs_func is None:
        pytest.skip("PyTorch's table has no refused calls of it")
    cases = info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    for case in cases:
        built, call = case.module_error_input.constructor_input, case.module_error_input.forward_input
        with pytest.raises((case.error_type, aclnn.AclnnError)):
            getattr(aclnn_torch, name)(*built.args, **built.kwargs)(*call.args, **call.kwargs)


FUNCTIONS = {f"nn.functional.conv{kind}{nd}d": f"Conv{name}{nd}d" for nd in (1, 2, 3)
             for kind, name in (("", ""), ("_transpose", "Transpose"))}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_sample_of_the_convolution_functions(name: str) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    info, count = next(i for i in op_db if i.name == name), 0
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=True):
        weight, *bias = sample.args
        if not below(sample.kwargs.get("output_padding", 0), sample.kwargs.get("stride", 1)):
            continue
        inputs = [sample.input, weight, *(b for b in bias if b is not None)]
        call = convolution_of(FUNCTIONS[name], weight, len(inputs) == 3, sample.kwargs)
        with aclnn.product("cpu"):
            try:
                expected = info.op(*inputs, **sample.kwargs)
            except RuntimeError:
                continue  # a sample that PyTorch itself refuses on the CPU
            found = call(*inputs)
            torch.testing.assert_close(found, expected)
            grad = torch.randn(expected.shape, dtype=torch.float64)
            ours, theirs = (torch.autograd.grad(r, inputs, grad) for r in (found, expected))
            torch.testing.assert_close(ours, theirs)
        count += 1
    assert count >= 2


def below(extra: Any, stride: Any) -> bool:
    pairs = torch.broadcast_tensors(torch.as_tensor(extra), torch.as_tensor(stride))
    return bool((pairs[0] < pairs[1]).all())


def convolution_of(kind: str, weight: Any, has_bias: bool, attributes: dict[str, Any]) -> Any:
    """Our module of these attributes as a function of input, weight and bias."""
    groups, (first, second, *kernel) = attributes.get("groups", 1), weight.shape
    channels = (first, second * groups) if "Transpose" in kind else (second * groups, first)
    module = getattr(aclnn_torch, kind)(*channels, kernel, bias=has_bias, dtype=weight.dtype, **attributes)

    def call(input: Any, *parameters: Any) -> Any:
        return torch.func.functional_call(module, dict(zip(("weight", "bias"), parameters, strict=False)), (input,))

    return call


@pytest.mark.long
def test_every_sample_of_elu() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    info = next(i for i in op_db if i.name == "nn.functional.elu")
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
            x, alpha = sample.input, sample.kwargs.get("alpha", 1.0)
            with aclnn.product("cpu"):
                ours, theirs = aclnn_torch.elu(x, alpha), torch.nn.functional.elu(x, alpha)
                torch.testing.assert_close(ours, theirs)
                grad = torch.randn(x.shape, dtype=torch.float64).to(dtype)
                torch.testing.assert_close(torch.autograd.grad(ours, x, grad), torch.autograd.grad(theirs, x, grad))
