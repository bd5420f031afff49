"""The LSTM against its seed sample, PyTorch, finite differences, and the corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import FLOAT64, by_name
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.ops.lstm import SAVED, lstm_backward_case
from tests.harness import call, run_and_judge, tensors
from tests.ops.lstm_forward import Forward, counts_of, fill_as_forward, forward, taking_part, time_major

OUTPUTS = ("dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut")
ENGINES = ["auto", "numpy", "reference"]
SMALL = st.integers(1, 3)


@st.composite
def lengths(draw: st.DrawFn, steps: int, batch: int, shortest: int = 0) -> tuple[int, ...]:
    found = draw(st.lists(st.integers(shortest, steps), min_size=batch, max_size=batch))
    return tuple(sorted(found, reverse=True))


Sizes = dict[str, Any]
"""The keyword arguments of a case: what a failing example should print."""


@st.composite
def sizes(draw: st.DrawFn, variable: bool = False, shortest: int = 0) -> Sizes:
    steps, batch = draw(st.integers(1, 4)), draw(SMALL)
    found = {"steps": steps, "batch": batch, "input_size": draw(SMALL), "hidden_size": draw(SMALL)}
    found |= {name: draw(st.booleans()) for name in ("bidirectional", "has_bias", "batch_first")}
    found |= {"layers": draw(SMALL), "lengths": draw(lengths(steps, batch, shortest)) if variable else None}
    return found


def double(sizes: Sizes) -> Case:
    return lstm_backward_case(**sizes, dtype=FLOAT64, device=CPU)


def assert_right(case: Case, filled: dict[str, Any]) -> None:
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


def gradients_by_torch(case: Case, filled: dict[str, Any], done: Forward) -> dict[str, Any]:
    """Autograd of torch.nn.LSTM in float64, after checking that its outputs are those of our forward."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    def leaf(array: np.ndarray) -> Any:
        return torch.tensor(np.asarray(array, np.float64), requires_grad=True)

    v, part = case.values, taking_part(counts_of(case), done.h.shape[1])
    lstm = torch.nn.LSTM(
        v["input"].shape[2], done.h.shape[2], v["numLayers"], v["hasBias"], v["batchFirst"], 0.0, v["bidirectional"]
    ).double()
    for mine, theirs in zip(filled["params"], lstm.parameters(), strict=True):
        theirs.data = torch.tensor(mine.view.astype(np.float64))
    x = leaf(np.where(time_major(case, part), filled["input"].view.astype(np.float64), 0))
    state = [leaf(t.view) for t in filled["hx"]]
    sequence = x
    if v["batchSizesOptional"] is not None:
        lengths_ = torch.tensor(part.sum(axis=(0, 2)))
        sequence = pack_padded_sequence(x, lengths_, batch_first=v["batchFirst"], enforce_sorted=True)
    y, last = lstm(sequence, tuple(state))
    if v["batchSizesOptional"] is not None:
        y, _ = pad_packed_sequence(y, batch_first=v["batchFirst"], total_length=len(done.y))
    for ours, theirs in zip((time_major(case, done.y), done.h, done.c), (y, *last), strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-13, atol=1e-14)
    dy = np.where(time_major(case, part), filled["dy"].view.astype(np.float64), 0)
    into = [torch.tensor(np.asarray(g, np.float64)) for g in (dy, filled["dh"].view, filled["dc"].view)]
    torch.autograd.backward([y, *last], into)
    found = [a.grad.numpy() for a in (x, *state)]
    return dict(zip(OUTPUTS, [*found, [p.grad.numpy() for p in lstm.parameters()]], strict=True))


def assert_torch_agrees(case: Case, seed: int) -> None:
    """Our gradients are within the allowed error, and torch's equal them but for the rounding of its own forward."""
    filled, done = fill_as_forward(case, seed)
    call(case, filled)
    assert_right(case, filled)
    for name, theirs in gradients_by_torch(case, filled, done).items():
        for ours, their in zip(*(x if isinstance(x, list) else [x] for x in (filled[name], theirs)), strict=True):
            np.testing.assert_allclose(ours.view, their, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_seed_sample(engine: str) -> None:
    ones = np.ones((1, 1, 8), np.float32)
    params = [np.ones(s, np.float32) for s in ((32, 8), (32, 8), (32,), (32,))]
    saved = [[ones]] * 6 + [[np.tanh(ones)]]
    dx, dh_prev, dc_prev, dparams = aclnn.lstm_backward(
        ones, [ones, ones], params, ones, ones, ones, *saved,
        has_bias=True, num_layers=1, bidirectional=False, batch_first=False, engine=engine,
    )  # fmt: skip
    assert (dc_prev == np.float32(1.8399486)).all()
    assert dc_prev.shape == (1, 1, 8)
    for zeros, shape in zip((dx, dh_prev, *dparams), ((1, 1, 8), (1, 1, 8), *(p.shape for p in params)), strict=True):
        assert zeros.shape == shape
        assert not zeros.any()


@pytest.mark.torch
@settings(max_examples=300)
@given(sizes(), st.integers(0, 9))
def test_against_torch_in_float64(sizes: Sizes, seed: int) -> None:
    assert_torch_agrees(double(sizes), seed)


@pytest.mark.torch
@settings(max_examples=100)
@given(sizes(variable=True, shortest=1), st.integers(0, 9))
def test_variable_length_equals_torchs_packed_lstm_whatever_is_in_the_padding(sizes: Sizes, seed: int) -> None:
    assert_torch_agrees(double(sizes), seed)


@pytest.mark.torch
@pytest.mark.parametrize("batch_first", [False, True])
def test_two_layers_both_ways_with_nan_in_every_padded_position(batch_first: bool) -> None:
    case = lstm_backward_case(
        5, 4, 3, 2, 2, True, batch_first=batch_first, lengths=(5, 3, 3, 1), dtype=FLOAT64, device=CPU
    )
    filled, _ = fill_as_forward(case, 3)
    holes = ~taking_part(counts_of(case), 4)
    for name in ("input", "dy"):
        assert np.isnan(time_major(case, filled[name].view)[holes[..., 0]]).all()
    for name in SAVED:
        assert all(np.isnan(t.view[holes[..., 0]]).all() for t in filled[name])
    assert_torch_agrees(case, 3)


@settings(max_examples=200)
@given(
    st.one_of(sizes(), sizes(variable=True)),
    st.sampled_from(["float32", "float16"]),
    st.integers(0, 9),
    st.sampled_from(["numpy", "reference"]),
)
def test_in_float32_and_float16_every_element_is_within_the_allowed_error(
    sizes: Sizes, dtype: str, seed: int, engine: str
) -> None:
    case = lstm_backward_case(**sizes, dtype=by_name(dtype))
    filled, _ = fill_as_forward(case, seed)
    call(case, filled, engine=engine)
    assert_right(case, filled)


@settings(max_examples=100)
@given(sizes(variable=True), st.integers(0, 9))
def test_against_central_differences(sizes: Sizes, seed: int) -> None:
    """The slope of Σ dy·y + dh·h + dc·c along a random direction in everything the forward reads."""
    case = double(sizes)
    filled, _ = fill_as_forward(case, seed)
    call(case, filled, engine="numpy")
    counts, rng = counts_of(case), np.random.default_rng(seed)
    x = time_major(case, filled["input"].view)
    dy = np.where(taking_part(counts, x.shape[1]), time_major(case, filled["dy"].view), 0)
    given_ = [x, *(t.view for name in ("hx", "params") for t in filled[name])]
    ways = [rng.normal(size=a.shape) for a in given_]

    def loss(step: float) -> float:
        moved, *rest = (a + step * way for a, way in zip(given_, ways, strict=True))
        out = forward(moved, rest[:2], rest[2:], case.values["numLayers"], counts)
        pairs = ((dy, out.y), (filled["dh"].view, out.h), (filled["dc"].view, out.c))
        return float(sum((gradient * value).sum() for gradient, value in pairs))

    step = 1e-5
    slope = (loss(step) - loss(-step)) / (2 * step)
    dx, *others = (tensor.view for name, tensor in tensors(filled).items() if name.partition("[")[0] in OUTPUTS)
    ours = sum((g * way).sum() for g, way in zip((time_major(case, dx), *others), ways, strict=True))
    assert abs(ours - slope) <= 1e-7 * (1 + sum(np.abs(g).sum() for g in (dx, *others)))


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_reaches_what_depends_on_it_and_nothing_else(engine: str) -> None:
    case = lstm_backward_case(4, 3, 2, 2, bidirectional=True)
    filled = fill(case)
    filled["dy"].view[2, 1, 0] = np.nan  # the forward half: back in time to step 0; the reverse half stays clean
    call(case, filled, engine=engine)
    poisoned = np.zeros((4, 3), bool)
    poisoned[:3, 1] = True
    assert (np.isnan(filled["dxOut"].view).any(axis=2) == poisoned).all()
    for name in ("dhPrevOut", "dcPrevOut"):
        found = np.isnan(filled[name].view).any(axis=2)
        assert found.tolist() == [[False, True, False], [False, False, False]]
    assert [np.isnan(t.view).any() for t in filled["dparamsOut"]] == [True] * 4 + [False] * 4
    assert_right(case, filled)


@pytest.mark.parametrize("engine", ["numpy", "reference"])
@pytest.mark.parametrize("name", ["input", "dy", "dh", "dc", "hx", "params", *SAVED])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_nan_and_inf_follow_ieee_arithmetic(name: str, value: float, engine: str) -> None:
    case = lstm_backward_case(3, 2, 2, 3, 2, True, batch_first=True)
    filled = fill(case, 1)
    tensor = filled[name][1] if isinstance(filled[name], list) else filled[name]
    tensor.view[1, 0] = value
    call(case, filled, engine=engine)
    assert_right(case, filled)
    assert any(not np.isfinite(t.view).all() for n, t in tensors(filled).items() if n.partition("[")[0] in OUTPUTS)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("empty", ["steps", "batch", "hidden_size", "input_size"])
def test_empty_sizes(empty: str, engine: str) -> None:
    plain = {"steps": 3, "batch": 2, "input_size": 4, "hidden_size": 2, "layers": 2, "bidirectional": True}
    case = lstm_backward_case(**(plain | {empty: 0}))
    filled = fill(case)
    call(case, filled, engine=engine)
    if empty == "input_size":
        assert filled["dparamsOut"][1].view.all()
        return assert_right(case, filled)
    assert not filled["dxOut"].view.any()
    assert not any(t.view.any() for t in filled["dparamsOut"])
    for given_, found in (("dh", "dhPrevOut"), ("dc", "dcPrevOut")):
        assert (filled[found].view == filled[given_].view).all()
    return None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sequence_in_no_step_passes_its_gradients_on_and_touches_nothing_else(engine: str) -> None:
    with_it = lstm_backward_case(3, 3, 2, 2, 2, True, lengths=(3, 2, 0))
    filled, _ = fill_as_forward(with_it, 5)
    for name in ("hx", "dh", "dc"):
        for tensor in filled[name] if isinstance(filled[name], list) else [filled[name]]:
            tensor.view[:, 2] = np.nan if name == "hx" else np.inf
    call(with_it, filled, engine=engine)
    assert (filled["dhPrevOut"].view[:, 2] == np.inf).all()
    assert (filled["dcPrevOut"].view[:, 2] == np.inf).all()
    assert not filled["dxOut"].view[:, 2].any()
    without = lstm_backward_case(3, 2, 2, 2, 2, True, lengths=(3, 2))
    alone = fill(without)
    for name, tensor in tensors(alone).items():
        base, _, index = name.partition("[")
        source = filled[base][int(index[:-1])] if index else filled[base]
        shared = base not in ("params", "dparamsOut", "batchSizesOptional")
        tensor.view[...] = source.view[:, :2] if shared else source.view
    assert_right(without, alone)


BAD_SIZES = [
    ([3, 4, 1], "batchSizesOptional[1] is 4 after 3; the elements must lie in 0..4"),
    ([3, 2, -1], "batchSizesOptional[2] is -1 after 2; the elements must lie in 0..4"),
    ([5, 2, 1], "batchSizesOptional[0] is 5; the elements must lie in 0..4"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("counts", "says"), BAD_SIZES)
def test_bad_batch_sizes_are_found_when_the_work_runs_and_nothing_is_written(
    counts: list[int], says: str, engine: str
) -> None:
    case = lstm_backward_case(3, 4, 2, 2, lengths=(3, 3, 2, 1))
    filled = fill(case)
    filled["batchSizesOptional"].view[...] = counts
    with pytest.raises(aclnn.AclnnError) as refused:
        call(case, filled, engine=engine)
    assert refused.value.code == 161002
    assert refused.value.argument == "batchSizesOptional"
    assert says in refused.value.message
    assert "不递增" in refused.value.message_zh
    for name, tensor in tensors(filled).items():
        assert name.partition("[")[0] not in OUTPUTS or np.isnan(tensor.view).all()


def arguments(case: Case, filled: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of aclnn.lstm_backward."""
    given_ = {a.snake: filled[a.name] for a in case.op.inputs if a.name != "outputMask"}
    return {n: [t.view for t in v] if isinstance(v, list) else getattr(v, "view", v) for n, v in given_.items()}


def room_of(plan: Any) -> Any:
    return np.empty(plan.workspace_size, np.uint8)


def test_on_a_stream_bad_batch_sizes_surface_at_synchronize() -> None:
    case = lstm_backward_case(3, 2, lengths=(3, 1))
    given_ = arguments(case, fill(case))
    plan = aclnn.lstm_backward.plan(**given_)
    given_["batch_sizes"][...] = [1, 2, 2]  # after phase 1: the values are read when the work runs
    with aclnn.Stream() as stream:
        plan.run(room_of(plan), stream)
        with pytest.raises(aclnn.AclnnError, match=r"batchSizesOptional\[1\] is 2 after 1"):
            stream.synchronize()


def test_fresh_outputs_and_given_ones_hold_the_same() -> None:
    case = lstm_backward_case(3, 2, layers=2, bidirectional=True)
    filled = fill(case)
    dx, dh_prev, dc_prev, dparams = aclnn.lstm_backward(**arguments(case, filled))
    assert isinstance(dparams, list)
    out = tuple(np.empty_like(a) for a in (dx, dh_prev, dc_prev)) + ([np.empty_like(p) for p in dparams],)
    assert aclnn.lstm_backward(**arguments(case, filled), out=out) is out
    for mine, theirs in zip((*out[:3], *out[3]), (dx, dh_prev, dc_prev, *dparams), strict=True):
        assert (mine == theirs).all()
    with pytest.raises(aclnn.AclnnError, match=r"dparamsOut has 15 elements but must have 16"):
        aclnn.lstm_backward(**arguments(case, filled), out=(*out[:3], out[3][1:]))
    with pytest.raises(aclnn.AclnnError, match=r"dparamsOut\[2\] overlaps dparamsOut\[3\] in memory"):
        aclnn.lstm_backward(**arguments(case, filled), out=(*out[:3], [*out[3][:3], out[3][2], *out[3][4:]]))
    with pytest.raises(aclnn.AclnnError, match="hx is a contiguous ndarray of dtype float32; it must be a list"):
        aclnn.lstm_backward(**arguments(case, filled) | {"hx": dx})


def test_addresses_of_list_elements_may_be_exchanged() -> None:
    case = lstm_backward_case(3, 2)
    filled = fill(case)
    plan = aclnn.lstm_backward.plan(**arguments(case, filled), repeatable=True)
    room = room_of(plan)
    first = [np.array(p) for p in plan.run(room)[3]]
    other = filled["params"][1].view * 2
    plan.set_address("params", other, index=1)
    assert any((a != b).any() for a, b in zip(first, plan.run(room)[3], strict=True))
    for index in (None, 4, -1):
        with pytest.raises(aclnn.AclnnError, match=f"params is a list of 4; index is {index} but must be 0..3"):
            plan.set_address("params", other, index=index)
    with pytest.raises(aclnn.AclnnError, match="dy is one tensor; index is 0 but must be None"):
        plan.set_address("dy", filled["dy"], index=0)


@pytest.mark.torch
def test_torch_tensors_in_torch_tensors_out() -> None:
    import torch

    case = lstm_backward_case(3, 2, lengths=(2, 1))
    given_ = arguments(case, fill(case))

    def to_torch(value: Any) -> Any:
        if isinstance(value, list):
            return [to_torch(v) for v in value]
        return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value

    expected = aclnn.lstm_backward(**given_)
    found = aclnn.lstm_backward(**{name: to_torch(value) for name, value in given_.items()})
    for mine, theirs in zip((*found[:3], *found[3]), (*expected[:3], *expected[3]), strict=True):
        assert (mine.numpy() == theirs).all()


def test_dropout_between_layers_in_training_warns_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    filled = fill(lstm_backward_case(2, 2, layers=2))
    given_ = arguments(lstm_backward_case(2, 2, layers=2), filled)
    expected = aclnn.lstm_backward(**given_)
    assert aclnn.lstm_backward(**given_ | {"dropout": 0.5, "train": False})  # any warning would be an error here
    assert not caplog.records
    says = "aclnnLstmBackward: dropout is 0.5 between 2 layers in training"
    for make in (aclnn.lstm_backward, aclnn.lstm_backward.plan):
        with pytest.warns(UserWarning, match=says) as warned:
            found = make(**given_ | {"dropout": 0.5})
        assert warned[0].filename == __file__
    assert (found.run(room_of(found))[0] == expected[0]).all()
    assert [record.getMessage()[: len(says)] for record in caplog.records] == [says]


def test_case_tables_say_what_is_wrong_with_lengths() -> None:
    for bad in ((1, 2), (3, 1), (1,), (1, -1)):
        with pytest.raises(ValueError, match=r"it must be 2 numbers in 0\.\.2 that do not increase"):
            lstm_backward_case(2, 2, lengths=bad)


def test_the_bound_stays_sharp_over_many_steps_and_holds_where_everything_has_one_sign() -> None:
    case = lstm_backward_case(steps=120, batch=2, input_size=8, hidden_size=48)
    filled, judged = run_and_judge(case, "numpy")
    arrays = views(filled, case.op)
    arrays["dxOut"] *= 1.001  # a fault of a thousandth, 120 steps on, still shows
    assert all(j.sound for j in judged)
    assert not judge(case.op, case.call, arrays)[0].sound

    filled = fill(case)
    arrays = views(filled, case.op)
    for name in ("i", "g", "f", "o", "h", "c", "tanhc"):
        arrays[name][0][...] = 0.7
    for array in (arrays["params"][1], arrays["dy"], arrays["dh"], arrays["dc"]):
        array[...] = 2 / 48
    call(case, filled, engine="numpy")
    assert all(j.sound for j in judge(case.op, case.call, arrays))
