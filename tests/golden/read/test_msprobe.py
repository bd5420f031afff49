"""Dumps of msprobe: the rules a reader needs, on which a naive one fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.base import exit_codes
from aclnn.base.rounding import to_hf32
from aclnn.golden.result import PASS
from aclnn.golden.show import calls
from tests.golden.dumping import (
    BF16,
    CONV,
    Array,
    DumpWriter,
    entry,
    judged,
    lstm,
    lstm_parameters,
    names,
    save,
    save_pt,
    small,
    why,
)


def as_module(w: DumpWriter, name: str = "Module.net.conv.Conv2d", keep: bool = False) -> None:
    """The convolution again, as a dump of level L0 has it."""
    forward, backward = w.forwards[f"{CONV}.forward"], w.backwards[0][f"{CONV}.backward"]
    x, weight, bias, *_ = forward["input_args"]
    told = {"input_args": [x], "input_kwargs": {}, "output": forward["output"]}
    w.forwards[f"{name}.forward.0"] = told | {"parameters": {"weight": weight, "bias": bias}}
    gx, gw, gb = backward["output"]
    w.backwards.insert(0, {f"{name}.backward.0": {"input": backward["input"], "output": [gx]}})
    w.backwards.insert(0, {f"{name}.parameters_grad.0": {"weight": [gw], "bias": [gb]}})
    if not keep:
        del w.forwards[f"{CONV}.forward"]
        w.backwards.pop()


# 1. Once, and by name


def test_a_call_seen_as_module_and_as_function_is_judged_once(tmp_path: Path) -> None:
    w = small(tmp_path)
    as_module(w, keep=True)
    w.parents = {f"{CONV}.forward": "Module.net.conv.Conv2d.forward.0"}
    found = judged(w.finish())
    assert names(found) == [f"{CONV}.forward", f"{CONV}.backward"]
    w.parents = {}  # construct.json may say nothing
    assert names(judged(w.finish())) == [f"{CONV}.forward", f"{CONV}.backward"]
    (tmp_path / "construct.json").unlink()
    (tmp_path / "stack.json").unlink()
    found = judged(tmp_path)
    assert (found.passed, found.calls[0].first.line) == (True, "")


def test_order_does_not_matter(tmp_path: Path) -> None:
    folder = small(tmp_path).finish()
    entry(folder, lambda data: [data.update({n: data.pop(n)}) for n in sorted(data)])
    found = judged(folder)
    assert names(found) == [f"{CONV}.backward", f"{CONV}.forward"]
    assert found.passed


# 2. Gates are recomputed


def stepwise_lstm(x: Array, w_ih: Array, w_hh: Array, b: Array, dtype: Any) -> tuple[Array, Array, Array]:
    """An LSTM of which every value is stored in a narrow type."""

    def narrow(value: Array) -> Array:
        return value.astype(dtype).astype(np.float32)

    h = c = np.zeros((x.shape[1], w_hh.shape[1]), np.float32)
    seen = []
    for step in x.astype(np.float32):
        a = narrow(narrow(step @ w_ih.astype(np.float32).T + b) + narrow(h @ w_hh.astype(np.float32).T))
        i, f, g, o = np.split(a, 4, -1)
        i, f, o = (narrow(1 / (1 + np.exp(-v))) for v in (i, f, o))
        c = narrow(narrow(f * c) + narrow(i * narrow(np.tanh(g))))
        h = narrow(o * narrow(np.tanh(c)))
        seen.append(h)
    return np.stack(seen).astype(dtype), h[None].astype(dtype), c[None].astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_a_narrow_lstm_that_stores_every_step_is_right_and_a_wrong_one_is_not(tmp_path: Path, dtype: Any) -> None:
    w = DumpWriter(tmp_path)
    x = w.draw(20, 4, 6, dtype=dtype)
    params = lstm_parameters(w, 6, 8, dtype=dtype)
    params = {n: np.zeros_like(p) if n.startswith("bias_hh") else p for n, p in params.items()}
    w_ih, w_hh, bias = (params[n] for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"))
    y, h, c = stepwise_lstm(x, w_ih, w_hh, bias.astype(np.float32), dtype)
    w.module("Module.rnn.LSTM", 0, [x], [y, [h, c]], params)
    assert judged(w.finish()).passed
    h = h.copy()
    h[0, 2] = (h[0, 2].astype(np.float32) * 1.2).astype(dtype)
    w.module("Module.rnn.LSTM", 0, [x], [y, [h, c]], params)
    found = judged(w.finish())
    assert [r.output for r in found.reports if r.sound is False] == ["hy"]


# 3. What a dump does not say


def test_attributes_of_a_module_are_those_that_its_forward_shows(tmp_path: Path) -> None:
    w = small(tmp_path)
    as_module(w)
    found = judged(w.finish())
    assert found.passed
    assert why(found) == {}
    assert {r.output for r in found.reports} == {"output", "gradInput", "gradWeight", "gradBias"}


def test_where_nothing_shows_them_they_are_not_guessed_but_may_be_said(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    w.conv(CONV, w.draw(2, 3, 8, 8), w.draw(4, 3, 3, 3), None, padding=9, stride=9)
    as_module(w)
    folder = w.finish()
    found = judged(folder)
    assert found.exit_code() == exit_codes.BAD_INPUT
    assert "none that was tried reproduces its forward" in why(found)["Module.net.conv.Conv2d.forward.0"]
    said = {"net.conv": {"padding": 9, "stride": [9, 9]}}
    assert judged(folder, attributes=said).passed
    (tmp_path / "a.json").write_text(json.dumps(said))
    assert judged(folder, attributes=tmp_path / "a.json").passed
    with pytest.raises(aclnn.AclnnError, match=r"net\.conv has 'strides'; attributes are"):
        judged(folder, attributes={"net.conv": {"strides": 1}})


@pytest.mark.parametrize("batch_first", [False, True])
def test_batch_first_is_tried_where_the_sizes_do_not_tell(tmp_path: Path, batch_first: bool) -> None:
    w = DumpWriter(tmp_path)
    lstm(w, "Module.rnn.LSTM", w.draw(4, 4, 3), lstm_parameters(w, 3, 5), batch_first=batch_first)
    assert judged(w.finish()).passed
    tensors = tmp_path / "dump_tensor_data"
    save(tensors / "Module.rnn.LSTM.forward.0.output.0.pt", w.draw(4, 4, 5))
    found = judged(tmp_path)
    assert "neither way reproduces its forward" in why(found)["Module.rnn.LSTM.forward.0"]
    assert found.exit_code() == exit_codes.BAD_INPUT


def test_dropout_between_layers_is_no_fault_of_a_kernel(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    lstm(w, "Module.rnn.LSTM", w.draw(6, 4, 3), lstm_parameters(w, 3, 5, layers=2), layers=2)
    folder = w.finish()
    tensors = tmp_path / "dump_tensor_data"
    save(tensors / "Module.rnn.LSTM.forward.0.output.0.pt", w.draw(6, 4, 5))
    found = judged(folder)
    assert "whether there is dropout" in why(found)["Module.rnn.LSTM.forward.0"]
    assert "its forward is not reproduced" in why(found)["Module.rnn.LSTM.backward.0"]
    assert len(judged(folder, attributes={"rnn": {"dropout": 0.0}}).wrong) == 1


def test_alpha_of_a_module(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    w.elu("Functional.elu.0", w.draw(5, 6), [0.7, False], 0.7)
    forward, back = w.forwards.pop("Functional.elu.0.forward"), w.backwards.pop()["Functional.elu.0.backward"]
    w.forwards["Module.act.ELU.forward.0"] = forward | {"input_args": forward["input_args"][:1], "parameters": {}}
    w.backwards.append({"Module.act.ELU.backward.0": back})
    assert judged(w.finish()).passed
    save(tmp_path / "dump_tensor_data" / "Functional.elu.0.forward.output.0.pt", w.draw(5, 6))
    assert "its forward does not show it" in why(judged(tmp_path))["Module.act.ELU.backward.0"]


# 4. HF32


def test_hf32_is_told_from_float32(tmp_path: Path) -> None:
    w = small(tmp_path)
    x, weight = w.draw(2, 3, 8, 8), w.draw(4, 3, 3, 3)
    with aclnn.product("cpu"), aclnn.engine("reference"):
        y = aclnn.convolution(to_hf32(x), to_hf32(weight), None, 1, 1, 1, False, 0, 1, cube_math_type=0)
    del w.forwards[f"{CONV}.forward"]
    w.backwards.clear()
    w.function(CONV, [x, weight, None, [1, 1], [1, 1], [1, 1], 1], y, y, [None, None, None])
    folder = w.finish()
    entry(folder, lambda data: data.pop(f"{CONV}.backward"))
    found = judged(folder)
    assert found.passed
    assert "right as HF32, not as float32" in str(found)
    assert judged(folder, hf32="yes").passed
    refused = judged(folder, hf32="no")
    assert refused.exit_code() == exit_codes.MISMATCH
    assert refused.reports[0].hints[0].key == "hf32"
    with pytest.raises(aclnn.AclnnError, match="hf32 is 'maybe'; it must be auto, yes or no"):
        judged(folder, hf32="maybe")


# 5. Autocast, bfloat16 in .npy, strides


def test_autocast_rounds_the_inputs(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    x, weight, bias = w.draw(2, 3, 8, 8), w.draw(4, 3, 3, 3), w.draw(4)
    w.conv(CONV, x.astype(BF16), weight.astype(BF16), bias.astype(BF16))
    told = w.forwards[f"{CONV}.forward"]["input_args"]
    told[:3] = [w.tensor(f"{CONV}.forward.input.{i}", a) for i, a in enumerate((x, weight, bias))]
    found = judged(w.finish())
    assert found.passed
    assert "autocast: its inputs were rounded to bfloat16" in {n.en for r in found.reports for n in r.notes}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_npy(tmp_path: Path, dtype: Any) -> None:
    w = DumpWriter(tmp_path, ".npy")
    w.conv(CONV, w.draw(2, 3, 8, 8, dtype=dtype), w.draw(4, 3, 3, 3, dtype=dtype), w.draw(4, dtype=dtype))
    assert judged(w.finish()).passed


def test_tensors_are_read_through_their_strides(tmp_path: Path) -> None:
    folder = small(tmp_path).finish()
    path = tmp_path / "dump_tensor_data" / f"{CONV}.forward.input.0.pt"
    from aclnn.golden.read import containers
    from tests.golden.dumping import pt_bytes

    x = np.array(containers.read(path).arrays[path.stem])
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))  # channels_last
    save_pt(path, last.reshape(x.shape), pt_bytes(x, [192, 1, 24, 3]))
    assert (containers.read(path).arrays[path.stem] == x).all()
    assert judged(folder).passed


# 6. In place


def test_an_elu_in_place_is_judged_from_its_result(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    x = w.draw(6, 7) * 8
    with aclnn.product("cpu"), aclnn.engine("reference"):
        y = aclnn.elu(x, 1.0, 1.0, 1.0)
        g = w.draw(6, 7)
        grad = aclnn.elu_backward(g, 1.0, 1.0, 1.0, True, y)
    w.function("Functional.elu.0", [y, 1.0, True], y, g, [grad])
    w.function("Functional.elu_.0", [x], y, g, [grad])
    w.function("Functional.elu.1", [y, 1.0, True], y, g, [g])  # the gradient of a copy
    found = judged(w.finish())
    assert found.passed
    assert "its input is overwritten" in why(found)["Functional.elu.0.forward"]
    assert "gradient of a copy" in why(found)["Functional.elu.1.backward"]
    assert "judged from its result" in str(found)


# 7. Gradients of parameters


def test_a_module_that_is_used_twice_sums_its_calls(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    weight, bias = w.draw(4, 3, 3, 3), w.draw(4)
    for n in (0, 1):
        w.conv(f"Functional.conv2d.{n}", w.draw(2, 3, 8, 8), weight, bias)
    grads = []
    for n in (0, 1):
        forward = w.forwards.pop(f"Functional.conv2d.{n}.forward")
        back = w.backwards[n].pop(f"Functional.conv2d.{n}.backward")
        parameters = dict(zip(("weight", "bias"), forward["input_args"][1:3], strict=True))
        told = {"input_args": forward["input_args"][:1], "input_kwargs": {}, "output": forward["output"]}
        w.forwards[f"Module.c.Conv2d.forward.{n}"] = told | {"parameters": parameters}
        w.backwards[n][f"Module.c.Conv2d.backward.{n}"] = {"input": back["input"], "output": back["output"][:1]}
        grads.append(tmp_path / "dump_tensor_data" / f"Functional.conv2d.{n}.backward.output.1.pt")
    from aclnn.golden.read import containers

    total = np.sum([containers.read(g).arrays[g.stem] for g in grads], axis=0, dtype=np.float32)
    w.parameters_grad("Module.c.Conv2d", {"weight": total, "bias": w.draw(4)})
    found = judged(w.finish())
    assert [(c.name, r.output) for c in found.wrong for r in c.reports if r.sound is False] == [
        ("Module.c.Conv2d.parameters_grad.0", "gradBias")
    ]
    w.parameters_grad("Module.c.Conv2d", {"weight": total}, number=1)
    found = judged(w.finish())
    assert found.passed
    assert "gradients are accumulated" in why(found)["Module.c.Conv2d.parameters_grad.0"]


# 8. and 9. Recomputation, wrappers, padding, batches, packed sequences


def test_recomputed_forwards_and_prefixes_of_wrappers(tmp_path: Path) -> None:
    w = small(tmp_path)
    w.forwards["Functional.conv2d.1.forward"] = w.forwards[f"{CONV}.forward"]  # recomputed; it has no backward
    as_module(w, "Module.module._orig_mod.conv.Conv2d", keep=True)
    w.parents = {"Functional.conv2d.9.forward": "Module.x.Conv2d.forward.0"}
    found = judged(w.finish(), attributes={"conv": {"padding": 1}})
    assert found.passed
    assert "Functional.conv2d.1.forward" in names(found)


@pytest.mark.parametrize(("kernel", "padding"), [(3, "same"), (4, "same"), (3, "valid")])
def test_padding_by_name(tmp_path: Path, kernel: int, padding: str) -> None:
    w = DumpWriter(tmp_path)
    x, weight = w.draw(2, 3, 9), w.draw(4, 3, kernel)
    front = (kernel - 1) // 2 if padding == "same" else 0
    wide = np.pad(x, ((0, 0), (0, 0), (0, (kernel - 1) % 2))) if padding == "same" else x
    w.conv("Functional.conv1d.0", wide, weight, None, padding=front)
    args = w.forwards["Functional.conv1d.0.forward"]["input_args"]
    args[0] = w.tensor("Functional.conv1d.0.forward.input.0", x)
    args[4] = {"type": "str", "value": padding}
    found = judged(w.finish())
    assert (found.passed, why(found)) == (True, {})


def test_keywords_and_inputs_without_a_batch(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    x, weight = w.draw(1, 3, 8, 8), w.draw(4, 3, 3, 3)
    w.conv(CONV, x, weight, None, stride=2)
    told = w.forwards[f"{CONV}.forward"]
    args = told["input_args"]
    args[0] = w.tensor("x", x[0])
    output = told["output"][0]
    told["output"] = [w.tensor("y", _read(tmp_path, output)[0])]
    told["input_kwargs"] = {"input": args[0], "weight": args[1], "stride": {"type": "int", "value": 2}}
    told["input_args"] = []
    found = judged(w.finish())
    assert found.passed
    assert "its input has no batch" in why(found)[f"{CONV}.backward"]


def _read(folder: Path, told: dict[str, Any]) -> Array:
    from aclnn.golden.read import containers

    path = folder / "dump_tensor_data" / told["data_name"]
    return np.array(containers.read(path).arrays[path.stem])


def test_packed_sequences(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    params, sizes = lstm_parameters(w, 3, 5), np.array([4, 4, 2, 1], np.int64)
    mask = np.arange(4) < sizes[:, None]
    x = np.where(mask[..., None], w.draw(4, 4, 3), np.float32(0))
    flags: dict[str, Any] = {"has_bias": True, "num_layers": 1, "bidirectional": False, "batch_first": False}
    with aclnn.product("cpu"), aclnn.engine("reference"):
        y, h, c, *_ = aclnn.lstm(x, list(params.values()), None, sizes, **flags)
    w.module("Module.rnn.LSTM", 0, [x[mask]], [y[mask], [h, c]], params)
    told = w.forwards["Module.rnn.LSTM.forward.0"]
    lengths = w.tensor("sizes", sizes, False)
    packed = {"batch_sizes": lengths, "sorted_indices": None, "unsorted_indices": None}
    told["input_args"] = [{"data": told["input_args"][0], **packed}]
    told["output"][0] = {"data": told["output"][0], **packed}
    found = judged(w.finish())
    assert (found.passed, why(found)) == (True, {})


def test_a_projection_is_none_of_ours(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    params = lstm_parameters(w, 3, 5) | {"weight_hr_l0": w.draw(2, 5)}
    w.module("Module.rnn.LSTM", 0, [w.draw(4, 2, 3)], [w.draw(4, 2, 2), [w.draw(1, 2, 2), w.draw(1, 2, 5)]], params)
    assert "proj_size" in why(judged(w.finish()))["Module.rnn.LSTM.forward.0"]


# 10. and 12. Who inherits, and whose line it is


def test_a_call_that_reads_a_wrong_result_says_so_and_is_right(tmp_path: Path) -> None:
    w = DumpWriter(tmp_path)
    w.conv("Functional.conv2d.0", w.draw(2, 3, 8, 8), w.draw(3, 3, 3, 3), None, padding=1)
    off = _read(tmp_path, w.forwards["Functional.conv2d.0.forward"]["output"][0]) * np.float32(1.1)
    save(tmp_path / "dump_tensor_data" / "Functional.conv2d.0.forward.output.0.pt", off)
    w.elu("Functional.elu.0", off, [1.0, False], 1.0)
    found = judged(w.finish())
    assert [c.name for c in found.wrong] == ["Functional.conv2d.0.forward"]
    reader = next(c for c in found.calls if c.name == "Functional.elu.0.forward")
    assert (reader.first.status, reader.first.inherits) == (PASS, "Functional.conv2d.0.forward")
    wide = "\n".join(line.plain for line in calls.lines(found, "en", 160))
    assert "reads the wrong result of Functional.conv2d.0.forward" in wide
    back = next(c for c in found.calls if c.name == "Functional.conv2d.0.backward")
    assert (back.first.line, back.first.code_line) == ("/home/me/train.py:10", "y = net(x)")


# Several dumps


def test_steps_and_ranks_in_their_order(tmp_path: Path) -> None:
    for step in (0, 2, 10):
        small(tmp_path / f"step{step}" / "rank0", seed=step).finish()
    found = judged(tmp_path)
    assert [n.split("/")[0] for n in names(found)] == ["step0", "step0", "step2", "step2", "step10", "step10"]
    assert len(names(judged(tmp_path / "step2"))) == 2
    assert len(names(judged(tmp_path / "step2" / "rank0" / "dump.json"))) == 2
