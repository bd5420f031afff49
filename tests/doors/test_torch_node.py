"""Calls without Python: the same bits, and the same answers to whatever autograd and its users ask of a node."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import aclnn  # noqa: E402
import aclnn.torch as aclnn_torch  # noqa: E402
from aclnn.base import folder  # noqa: E402
from aclnn.torch import direct, node  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(platform.system() != "Linux" or not shutil.which("g++"), reason="needs g++ on Linux"),
]

Results = list[Any]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if direct.again is None:
        aclnn_torch.build()
    assert direct.again is not None


@pytest.fixture(autouse=True)
def few_threads() -> Iterator[None]:
    with aclnn.threads(1):
        yield


def module_and_inputs(kind: str, dtype: Any = None) -> tuple[Callable[..., Any], Results]:
    torch.manual_seed(3)
    dtype = dtype or torch.float32

    def leaf(*shape: int) -> Any:
        return torch.randn(*shape, dtype=dtype).requires_grad_()

    if kind == "elu":
        return aclnn_torch.ELU(0.5), [leaf(3, 4)]
    if kind == "convolution":
        return aclnn_torch.Conv2d(4, 6, 3, padding=1, dtype=dtype), [leaf(2, 4, 5, 5)]
    if kind == "conv_tbc":
        return aclnn_torch.ConvTBC(4, 6, 3, padding=1, dtype=dtype), [leaf(6, 2, 4)]
    cell = aclnn_torch.LSTMCell(5, 7, dtype=dtype)
    return lambda x, h, c: cell(x, (h, c)), [leaf(2, 5), leaf(2, 7), leaf(2, 7)]


KINDS = "elu", "convolution", "conv_tbc", "thnn_fused_lstm_cell"


def outputs(call: Callable[..., Any], inputs: Results) -> Results:
    found = call(*inputs)
    return [*found] if isinstance(found, tuple) else [found]


def step(call: Callable[..., Any], inputs: Results) -> Results:
    made = outputs(call, inputs)
    loss = sum((one.float() * one.float()).sum() for one in made)
    return [*made, *torch.autograd.grad(loss, inputs)]


def is_node(tensor: Any) -> bool:
    return tensor.grad_fn is not None and tensor.grad_fn.name() == "AclnnBackward"


def familiar(kind: str, dtype: Any = None) -> tuple[Callable[..., Any], Results]:
    """A call that is made without Python by now, forwards and backwards."""
    call, inputs = module_and_inputs(kind, dtype)
    for _ in range(3):
        step(call, inputs)
    assert is_node(outputs(call, inputs)[0])
    return call, inputs


def without_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "again", None)


def equal(one: Results, other: Results) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


DTYPES = torch.float32, torch.float16, torch.bfloat16
PAIRS = [(kind, dtype) for kind in KINDS for dtype in DTYPES[: 2 if kind == KINDS[-1] else 3]]  # a cell takes two


@pytest.mark.parametrize(("kind", "dtype"), PAIRS)
def test_the_bits_are_those_of_python(kind: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    call, inputs = module_and_inputs(kind, dtype)
    found = [step(call, inputs) for _ in range(4)]
    with torch.no_grad():
        found_forward = [outputs(call, inputs) for _ in range(4)]
    without_node(monkeypatch)
    expected = step(call, inputs)
    assert all(equal(one, expected) for one in found)
    assert all(equal(one, expected[: len(one)]) and one[0].grad_fn is None for one in found_forward)


@pytest.mark.parametrize("kind", KINDS)
def test_no_function_of_python_runs_in_a_gradient(kind: str) -> None:
    call, inputs = familiar(kind)
    made = outputs(call, inputs)
    seen: list[str] = []
    sys.setprofile(lambda frame, event, argument: seen.append(frame.f_code.co_filename) if event == "call" else None)
    try:
        torch.autograd.grad(made, inputs, [torch.ones_like(one) for one in made])
    finally:
        sys.setprofile(None)
    assert not any("aclnn" in name and "tests" not in name for name in seen)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_that_is_a_sum_is_served_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its strides are 0."""
    call, inputs = familiar(kind)
    found = [torch.autograd.grad(outputs(call, inputs)[0].sum(), inputs, allow_unused=True) for _ in range(3)]
    without_node(monkeypatch)
    expected = torch.autograd.grad(outputs(call, inputs)[0].sum(), inputs, allow_unused=True)
    assert all(equal([*one], [*expected]) for one in found)


def test_hooks_see_and_change_gradients() -> None:
    call, (x,) = familiar("elu")
    y = call(x)
    y.register_hook(lambda grad: 2 * grad)
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda of_inputs, of_outputs: seen.append((of_inputs, of_outputs)))
    y.backward(torch.ones_like(y))
    assert torch.equal(seen[0][1][0], torch.full_like(y, 2.0))
    assert torch.equal(seen[0][0][0], x.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_tensors_pass_through_the_hooks_for_them(kind: str) -> None:
    call, inputs = familiar(kind)
    expected = step(call, inputs)
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor.detach().clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        made = outputs(call, inputs)
    assert packed
    loss = sum((one * one).sum() for one in made)
    assert equal([*made, *torch.autograd.grad(loss, inputs)], expected)


def test_a_second_backward_needs_what_was_freed() -> None:
    call, (x,) = familiar("elu")
    y = call(x)
    y.backward(torch.ones_like(y), retain_graph=True)
    y.backward(torch.ones_like(y))
    with pytest.raises(RuntimeError, match="second time"):
        y.backward(torch.ones_like(y))


def test_an_input_that_was_changed_is_noticed() -> None:
    call, (leaf,) = familiar("elu")
    x = leaf * 1
    y = call(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(torch.ones_like(y))


@pytest.mark.parametrize("kind", KINDS)
def test_a_derivative_of_the_gradient_is_refused(kind: str) -> None:
    call, inputs = familiar(kind)
    for _ in range(3):
        made = outputs(call, inputs)[0]
        (grad, *_) = torch.autograd.grad(made.square().sum(), inputs, create_graph=True, allow_unused=True)
        with pytest.raises(aclnn.AclnnError, match="double backward"):
            grad.square().sum().backward()


def test_frozen_weights_get_no_gradient() -> None:
    call, (x,) = familiar("convolution")
    for parameter in call.parameters():
        parameter.requires_grad_(False)
    expected = None
    for _ in range(4):
        (found,) = torch.autograd.grad(call(x).square().sum(), x)
        expected = found if expected is None else expected
        assert torch.equal(found, expected)
    assert is_node(call(x))
    assert all(parameter.grad is None for parameter in call.parameters())


def test_a_gradient_is_computed_on_the_engine_of_its_forward() -> None:
    x = torch.tensor([[-3.0, 0.5], [-0.1, 2.0]], requires_grad=True)
    call = aclnn_torch.ELU()
    for _ in range(3):
        step(call, [x])
    with aclnn.engine("reference"):
        for _ in range(3):
            y = call(x)
    (slow,) = torch.autograd.grad(y, x, torch.ones_like(y))
    with aclnn.engine("reference"):
        expected = aclnn.elu_backward(torch.ones_like(y), 1.0, 1.0, 1.0, False, x.detach())
    assert torch.equal(slow, expected)
    assert not is_node(y)  # no launches: Python makes it


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # PyTorch's forward mode uses it
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_modes_and_transforms_are_seen() -> None:
    call, (x,) = familiar("convolution")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert call(x).dtype is torch.bfloat16
    with torch.inference_mode():
        assert call(x).is_inference()
    with torch.profiler.profile() as profile:
        step(call, [x])
    assert {"aclnn::convolution", "aclnn::convolution_backward"} <= {event.key for event in profile.key_averages()}
    with pytest.raises(aclnn.AclnnError, match=r"torch\.func\.grad"):
        torch.func.grad(lambda given: call(given).sum())(x)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones_like(x))
        with pytest.raises(aclnn.AclnnError, match="forward-mode"):
            call(dual)
    assert torch.fx.symbolic_trace(torch.nn.Sequential(aclnn_torch.ELU())) is not None
    with torch.autograd.detect_anomaly(check_nan=False):
        step(call, [x])


def test_memory_that_was_freed_is_refused_with_a_sentence() -> None:
    call, (x,) = familiar("elu")
    gone = x.detach().clone().requires_grad_()
    gone.untyped_storage().resize_(0)
    with pytest.raises(aclnn.AclnnError):
        call(gone)


@pytest.mark.parametrize("other", ["to_sparse", "to_mkldnn"])
def test_tensors_of_other_layouts_are_pythons(other: str) -> None:
    call, (x,) = familiar("elu")
    with pytest.raises(Exception, match=r"."):  # whatever it was
        call(getattr(x.detach(), other)())


def test_what_is_forgotten_is_learned_again() -> None:
    call, inputs = familiar("conv_tbc")
    made = outputs(call, inputs)
    aclnn.cache_clear()
    torch.autograd.grad(made, inputs, [torch.ones_like(one) for one in made])
    assert not is_node(outputs(call, inputs)[0])
    familiar("conv_tbc")


def test_threads_get_the_same_at_once() -> None:
    call, inputs = familiar("convolution")
    expected, failed = step(call, inputs), []

    def work() -> None:
        with aclnn.threads(1):
            own = [one.detach().clone().requires_grad_() for one in inputs]
            failed.extend(i for i in range(300) if not equal(step(call, own), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_learns_for_itself() -> None:
    program = """
import os, sys, torch, aclnn, aclnn.torch
x = torch.randn(64, 1000, requires_grad=True)
call = aclnn.torch.ELU()
ones = torch.ones_like(x)
def gradient(y):
    return torch.autograd.grad(y, x, ones)[0].numpy()  # what PyTorch itself compares on threads would hang in a child
expected = [gradient(call(x)) for _ in range(3)][0]
y = call(x)
child = os.fork()
if not child:
    found = [gradient(y), *(gradient(call(x)) for _ in range(3))]
    os._exit(0 if all((one == expected).all() for one in found) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def kept_file() -> Path:
    return folder.root() / "torch" / node._file_name()


@pytest.mark.parametrize("mode", [0o600, 0o620], ids=["private", "others can write"])
def test_only_what_its_user_wrote_is_loaded(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "torch"
    home.mkdir(mode=0o700, parents=True)
    copy = home / kept_file().name
    shutil.copyfile(kept_file(), copy)
    copy.chmod(mode)
    asked = "import aclnn.torch, sys; sys.exit(aclnn.torch.direct.again is None)"
    ended = subprocess.run([sys.executable, "-c", asked], env={**os.environ, "ACLNN_CACHE_DIR": str(tmp_path)})
    assert (ended.returncode == 0) == (mode == 0o600)


def test_without_a_compiler_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "again", None)  # as where nothing is built
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(aclnn.AclnnError, match="no-such-compiler"):
        aclnn_torch.build()
