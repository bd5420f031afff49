"""The LSTM forwards against PyTorch, its gradient against central differences, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.contract.cases import Case, fill
from aclnn.ops.lstm import SAVED
from aclnn.ops.lstm_forward import lstm_case
from tests.harness import call

ENGINES = ["auto", "numpy", "reference"]
FLAGS = ("bidirectional", "has_bias", "batch_first", "train", "has_hx")


@st.composite
def cases(draw: st.DrawFn, **fixed: Any) -> Case:
    steps, batch = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    sizes = {"input_size": st.integers(0, 4), "hidden_size": st.integers(1, 4), "layers": st.integers(1, 3)}
    chosen = {name: draw(what) for name, what in sizes.items()} | {name: draw(st.booleans()) for name in FLAGS}
    if draw(st.booleans()):
        lengths = draw(st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
        chosen["lengths"] = tuple(sorted(lengths, reverse=True))
    return lstm_case(steps, batch, **{**chosen, **fixed})


def arrays(case: Case, seed: int = 0) -> dict[str, Any]:
    """The inputs of a case by Python name, float64, what takes no part NaN."""
    filled = fill(case, seed)
    found: dict[str, Any] = {a.snake: filled[a.name] for a in case.op.inputs if not a.is_tensor}
    for arg in case.op.inputs:
        if arg.is_tensor:
            value = filled[arg.name]
            found[arg.snake] = [t.view for t in value] if isinstance(value, list) else value and value.view
    found["input"] = found["input"].astype(np.float64)
    for name in ("params", "hx"):
        found[name] = found[name] and [a.astype(np.float64) for a in found[name]]
    if found["batch_sizes"] is not None:
        time_major(found, found["input"])[~taking_part(found)] = np.nan
    return found


def time_major(given: dict[str, Any], array: Any) -> Any:
    return array.swapaxes(0, 1) if given["batch_first"] else array


def taking_part(given: dict[str, Any]) -> np.ndarray:
    steps, batch, _ = time_major(given, given["input"]).shape
    sizes = np.full(steps, batch) if given["batch_sizes"] is None else given["batch_sizes"]
    return np.arange(batch) < sizes[:, None]


@pytest.mark.torch
@settings(max_examples=60)
@given(cases(train=True), st.integers(0, 9))
def test_results_and_gradients_are_pytorchs(case: Case, seed: int) -> None:
    """Forward then backward, against an nn.LSTM on packed sequences and its autograd."""
    import torch

    given = arrays(case, seed)
    steps, batch, input_size = time_major(given, given["input"]).shape
    part = taking_part(given)
    if input_size == 0 or not part.any() or not part[0].all():
        return  # PyTorch packs no sequence of length 0
    model = torch.nn.LSTM(input_size, given["params"][1].shape[1], given["num_layers"], given["has_bias"],
                          batch_first=False, bidirectional=given["bidirectional"], dtype=torch.float64)  # fmt: skip
    weights = [p for of_layer in model.all_weights for p in of_layer]
    with torch.no_grad():
        for theirs, ours in zip(weights, given["params"], strict=True):
            theirs.copy_(torch.tensor(ours))
    x = torch.tensor(np.where(part[..., None], time_major(given, given["input"]), 0), requires_grad=True)
    hx = [torch.tensor(s, requires_grad=True) for s in given["hx"] or np.zeros((2, *_state_shape(given, batch)))]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(part.sum(0)))
    y, (hy, cy) = model(packed, tuple(hx))
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=steps)
    result = dict(zip(("y", "hy", "cy", *SAVED), aclnn.lstm(**given, product="cpu"), strict=True))
    for ours, theirs in ((time_major(given, result["y"]), y), (result["hy"], hy), (result["cy"], cy)):
        torch.testing.assert_close(torch.tensor(np.ascontiguousarray(ours)), theirs.detach())

    rng = np.random.default_rng(seed)
    grads = [rng.normal(size=np.shape(t.detach())) for t in (y, hy, cy)]
    loss = sum((t * torch.tensor(g)).sum() for t, g in zip((y, hy, cy), grads, strict=True))
    theirs = torch.autograd.grad(loss, [x, *hx, *weights])
    dx, dh, dc, dparams = backward(given, result, grads)
    ours = (time_major(given, dx), dh, dc, *dparams)
    torch.testing.assert_close([torch.tensor(np.ascontiguousarray(a)) for a in ours], list(theirs))


def _state_shape(given: dict[str, Any], batch: int) -> tuple[int, int, int]:
    return given["num_layers"] * (1 + given["bidirectional"]), batch, given["params"][1].shape[1]


def backward(given: dict[str, Any], result: dict[str, Any], grads: list[Any]) -> Any:
    """The gradients of a forward's result, from what it saved."""
    batch = time_major(given, given["input"]).shape[1]
    hx = given["hx"] or list(np.zeros((2, *_state_shape(given, batch))))
    attributes = {n: given[n] for n in ("has_bias", "num_layers", "bidirectional", "batch_first")}
    saved = {name: result[name] for name in SAVED}
    dy = np.ascontiguousarray(time_major(given, grads[0]))
    return aclnn.lstm_backward(
        given["input"], hx, given["params"], dy, *grads[1:], **saved,
        batch_sizes=given["batch_sizes"], **attributes, product="cpu")  # fmt: skip


@settings(max_examples=25)
@given(cases(train=True, has_hx=True), st.integers(0, 9))
def test_its_central_differences_are_its_backward(case: Case, seed: int) -> None:
    given = arrays(case, seed)
    rng, step = np.random.default_rng(seed), 1e-6
    result = dict(zip(("y", "hy", "cy", *SAVED), aclnn.lstm(**given, product="cpu"), strict=True))
    grads = [rng.normal(size=result[name].shape) for name in ("y", "hy", "cy")]
    grads[0] = time_major(given, grads[0])

    def loss() -> float:
        y, hy, cy, *_ = aclnn.lstm(**given, product="cpu")
        return float(sum((a * g).sum() for a, g in zip((time_major(given, y), hy, cy), grads, strict=True)))

    dx, dh, dc, dparams = backward(given, result, grads)
    for array, grad in zip([given["input"], *given["hx"], *given["params"]], [dx, dh, dc, *dparams], strict=True):
        if array.size == 0:
            continue
        where = tuple(int(rng.integers(n)) for n in array.shape)
        if np.isnan(array[where]):
            assert grad[where] == 0
            continue
        kept, losses = array[where], []
        for change in (step, -step):
            array[where] = kept + change
            losses.append(loss())
        array[where] = kept
        assert grad[where] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("train", [True, False])
def test_what_takes_no_part_is_not_read_and_comes_out_as_zero(engine: str, train: bool) -> None:
    case = lstm_case(4, 3, 2, 3, layers=2, bidirectional=True, lengths=(4, 2, 0), train=train)
    given = arrays(case)
    given = {**given, "input": given["input"].astype(np.float32)}
    for name in ("params", "hx"):
        given[name] = [a.astype(np.float32) for a in given[name]]
    y, hy, cy, *lists = aclnn.lstm(**given, engine=engine)
    away = ~taking_part(given)
    for array in (y, *(a for one in lists if one is not None for a in one)):
        assert np.isfinite(array).all()
        assert (array[away] == 0).all()
    assert (hy[:, 2] == given["hx"][0][:, 2]).all()
    assert (cy[:, 2] == given["hx"][1][:, 2]).all()
    assert [one is None for one in lists] == [not train] * 7


def test_no_initial_state_is_zeros() -> None:
    given = arrays(lstm_case(3, 2, 2, 2, layers=2))
    zeros = {**given, "hx": [np.zeros_like(a) for a in given["hx"]]}
    without = aclnn.lstm(**{**given, "hx": None}, product="cpu")
    for a, b in zip(without[:3], aclnn.lstm(**zeros, product="cpu")[:3], strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_reaches_all_later_steps_of_its_sequence_and_nothing_else(engine: str) -> None:
    case = lstm_case(4, 3, 2, 3)
    filled = fill(case)
    filled["input"].view[1, 1, 0] = np.nan
    call(case, filled, engine=engine)
    out = filled["output"].view
    assert np.isnan(out[1:, 1]).all()
    assert np.isfinite(out[0]).all()
    assert np.isfinite(out[:, [0, 2]]).all()


def test_infinite_gates_saturate() -> None:
    case = lstm_case(1, 1, 1, 1, has_bias=False)
    filled = fill(case)
    filled["input"].view[...] = np.inf
    w_ih = filled["params"][0].view
    w_ih[...] = [[1], [-1], [1], [1]]
    call(case, filled)
    gates = [filled[n][0].view.item() for n in ("iOut", "fOut", "jOut", "oOut")]
    assert gates == [1, 0, 1, 1]


@pytest.mark.parametrize("sizes", [[1, 2, 2], [3, 1, 1], [2, 1, -1]])
def test_batch_sizes_that_make_no_sense_are_refused_when_it_runs(sizes: list[int]) -> None:
    case = lstm_case(3, 2, 2, 2, lengths=(3, 1))
    filled = fill(case)
    filled["batchSizes"].view[...] = sizes
    with pytest.raises(aclnn.AclnnError, match=r"aclnnLSTM: batchSizes\[\d\] is .* and not increase") as refused:
        call(case, filled)
    assert refused.value.code == 161002
    assert np.isnan(filled["output"].view).all()


def test_dropout_between_layers_is_refused_in_training_only() -> None:
    given = arrays(lstm_case(2, 2, 2, 2, layers=2))
    with pytest.raises(aclnn.AclnnError, match=r"dropout is 0.5; it must be 0 when train and numLayers > 1"):
        aclnn.lstm(**{**given, "dropout": 0.5}, product="cpu")
    aclnn.lstm(**{**given, "dropout": 0.5, "train": False}, product="cpu")
