"""Ways to get an operator wrong, each made the way a wrong kernel would make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.base.rounding import to_fp16, to_hf32
from tests.golden.by_hand import accumulated, lstm_backwards, product_by_picture
from tests.golden.planting import Array, Planted, planted

Wrong = dict[str, Any]
"""Outputs by name; those of a list by index."""
Fault = tuple[Planted, Wrong, str]
"""What was run, the outputs that are wrong, the key of the hint that each of them must get."""

FAULTS: dict[str, Callable[[], Fault]] = {}


def fault(make: Callable[[], Fault]) -> Callable[[], Fault]:
    FAULTS[make.__name__] = make
    return make


def conv(**sizes: Any) -> Planted:
    given = {"batch": 2, "in_channels": 6, "out_channels": 6, "size": 9, "padding": 1, "groups": 1}
    return planted("aclnnConvolutionBackward", **{**given, **sizes})


def tbc(**sizes: Any) -> Planted:
    given = {"time": 12, "batch": 3, "in_channels": 5, "out_channels": 5, "kernel": 3, "pad": 1}
    return planted("aclnnConvTbcBackward", **{**given, **sizes})


def lstm(**sizes: Any) -> Planted:
    given = {"steps": 5, "batch": 3, "input_size": 4, "hidden_size": 4, "layers": 2, "bidirectional": True}
    return planted("aclnnLstmBackward", **{**given, **sizes})


def cell(**sizes: Any) -> Planted:
    return planted("aclnnThnnFusedLstmCellBackward", **{"batch": 16, "hidden_size": 8, **sizes})


def named(run: Planted, results: Any, *names: str) -> Wrong:
    """Some results of the public function by vendor name; dparams by index."""
    found: Wrong = {}
    for arg, value in zip(run.op.outputs, results if isinstance(results, tuple) else (results,), strict=True):
        if arg.name in names:
            found |= (
                {f"{arg.name}[{i}]": v for i, v in enumerate(value)} if isinstance(value, list) else {arg.name: value}
            )
    return found


# Roundings


@fault
def conv_hf32() -> Fault:
    run = conv()
    return run, named(run, run.again(cube_math_type=1), "gradInput", "gradWeight"), "hf32"


@fault
def conv_float16() -> Fault:
    run = conv(nd=1, padding=0)
    return run, named(run, run.again(cube_math_type=2), "gradInput", "gradWeight"), "float16"


@fault
def conv_cube_math_type_ignored() -> Fault:
    run = conv(cube_math_type=1)
    return run, named(run, run.again(cube_math_type=0), "gradInput", "gradWeight"), "float32"


@fault
def tbc_hf32() -> Fault:
    run = tbc()
    return run, named(run, run.again(cube_math_type=3), "gradInput", "gradWeight"), "hf32"


@fault
def tbc_float16() -> Fault:
    run = tbc()
    return run, named(run, run.again(cube_math_type=2), "gradInput", "gradWeight"), "float16"


def _rounded_inputs(run: Planted, change: Callable[[Array], Array]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        if isinstance(value, list):
            return [one(v) for v in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value

    return {name: one(value) for name, value in run.inputs().items()}


@fault
def elu_float16() -> Fault:
    run = planted("aclnnEluBackward", shape=(20, 30), is_result=True)
    return run, named(run, run.again(**_rounded_inputs(run, to_fp16)), "gradInput"), "float16"


@fault
def cell_float16() -> Fault:
    run = cell()
    wrong = run.again(**_rounded_inputs(run, to_fp16))
    return run, named(run, wrong, "gradGatesOut", "gradCxOut", "gradBiasOut"), "float16"


@fault
def lstm_float16() -> Fault:
    run = lstm()
    return run, named(run, run.again(**_rounded_inputs(run, to_fp16)), "dxOut", "dhPrevOut", "dparamsOut"), "float16"


# Accumulation: the terms of every sum one after the other, each partial sum rounded


@fault
def conv_float16_accumulation() -> Fault:
    run = conv(batch=4, size=12, kernel=1, padding=0, dtype=FLOAT16)
    g, x = (run.given[n].astype(np.float32) for n in ("gradOutput", "input"))
    terms = np.einsum("nohw,nchw->nhwoc", g, x).reshape(-1, 6, 6, 1, 1)
    bias = accumulated(np.moveaxis(g, 1, -1).reshape(-1, 6), np.float16)
    return run, {"gradWeight": accumulated(terms, np.float16), "gradBias": bias}, "float16-accumulation"


@fault
def tbc_float16_accumulation() -> Fault:
    run = tbc(time=60, batch=4, kernel=1, pad=0, dtype=FLOAT16)
    g, x = (run.given[n].astype(np.float32) for n in ("self", "input"))
    terms = np.einsum("tbo,tbc->tbco", g, x).reshape(-1, 1, 5, 5)
    return run, {"gradWeight": accumulated(terms, np.float16)}, "float16-accumulation"


@fault
def tbc_bfloat16_accumulation() -> Fault:
    run = tbc(time=60, batch=4, kernel=1, pad=0, dtype=BFLOAT16)
    g, x = (run.given[n].astype(np.float32) for n in ("self", "input"))
    terms = np.einsum("tbo,tbc->tbco", g, x).reshape(-1, 1, 5, 5)
    return run, {"gradWeight": accumulated(terms, BFLOAT16.numpy)}, "bfloat16-accumulation"


@fault
def cell_float16_accumulation() -> Fault:
    run = cell(batch=400, dtype=FLOAT16)
    return run, {"gradBiasOut": accumulated(run.arrays["gradGatesOut"], np.float16)}, "float16-accumulation"


@fault
def elu_float16_arithmetic() -> Fault:
    run = planted(
        "aclnnEluBackward", shape=(20, 30), alpha=1.7, scale=1.3, input_scale=0.7, is_result=True, dtype=FLOAT16
    )
    g, x = run.given["gradOutput"], run.given["selfOrResult"]
    alpha, scale, input_scale = (np.float16(v) for v in (1.7, 1.3, 0.7))
    return run, {"gradInput": np.where(x > 0, g * scale, g * input_scale * (x + alpha * scale))}, "float16-arithmetic"


@fault
def lstm_hf32_products() -> Fault:
    run = lstm(steps=4, batch=6, input_size=8, hidden_size=8, layers=1, bidirectional=False)
    dx, dh_prev, _ = lstm_backwards(run, lambda a, b: to_hf32(a) @ to_hf32(b))
    return run, {"dxOut": dx, "dhPrevOut": dh_prev}, "hf32"


@fault
def lstm_float16_accumulation() -> Fault:
    run = lstm(steps=12, batch=20, hidden_size=8, layers=1, bidirectional=False, dtype=FLOAT16)
    _, _, gates = lstm_backwards(run, lambda a, b: a @ b)
    bias = accumulated(gates.reshape(-1, 32), np.float16)
    return run, {"dparamsOut[2]": bias, "dparamsOut[3]": bias}, "float16-accumulation"


# Kernels


@fault
def conv_kernel_not_flipped() -> Fault:
    run = conv(kernel=(3, 2), size=(9, 8))
    wrong = named(run, run.again(weight=run.given["weight"][:, :, ::-1, ::-1]), "gradInput")
    return run, {**wrong, "gradWeight": run.arrays["gradWeight"][:, :, ::-1, ::-1]}, "kernel-not-flipped"


@fault
def conv_transposed_kernel_not_flipped() -> Fault:
    run = conv(transposed=True, stride=2)
    return run, named(run, run.again(weight=run.given["weight"][:, :, ::-1, ::-1]), "gradInput"), "kernel-not-flipped"


@fault
def tbc_kernel_not_flipped() -> Fault:
    run = tbc()
    wrong = named(run, run.again(weight=run.given["weight"][::-1]), "gradInput")
    return run, {**wrong, "gradWeight": run.arrays["gradWeight"][::-1]}, "kernel-not-flipped"


@fault
def conv_padding_sign() -> Fault:
    """gradInput[i] = Σ gradOutput[u]·weight[q] where u + p + q = i: the sign of p is wrong."""
    run = conv(nd=1, size=10, kernel=3, padding=1)
    g, x, w = (run.given[n].astype(np.float64) for n in ("gradOutput", "input", "weight"))
    of_input, of_weight = np.zeros(x.shape), np.zeros(w.shape)
    for u in range(g.shape[2]):
        for q in range(3):
            i = u + 1 + q
            if i < x.shape[2]:
                of_input[:, :, i] += g[:, :, u] @ w[:, :, q]
                of_weight[:, :, q] += g[:, :, u].T @ x[:, :, i]
    wrong = {"gradInput": of_input.astype(np.float32), "gradWeight": of_weight.astype(np.float32)}
    return run, wrong, "padding-sign"


@fault
def tbc_padding_sign() -> Fault:
    run = tbc()
    g, x, w = (run.given[n].astype(np.float64) for n in ("self", "input", "weight"))
    of_input, of_weight = np.zeros(x.shape), np.zeros(w.shape)
    for u in range(g.shape[0]):
        for q in range(3):
            i = u + 1 + q
            if i < x.shape[0]:
                of_input[i] += g[u] @ w[q].T
                of_weight[q] += x[i].T @ g[u]
    wrong = {"gradInput": of_input.astype(np.float32), "gradWeight": of_weight.astype(np.float32)}
    return run, wrong, "padding-sign"


@fault
def conv_padding_ignored() -> Fault:
    """The kernel starts at the first element of the input instead of p before it."""
    run = conv(nd=1, size=10, kernel=3, padding=1)
    g, x, w = (run.given[n].astype(np.float64) for n in ("gradOutput", "input", "weight"))
    of_input = np.zeros(x.shape)
    for u in range(g.shape[2]):
        for q in range(min(3, x.shape[2] - u)):
            of_input[:, :, u + q] += g[:, :, u] @ w[:, :, q]
    return run, {"gradInput": of_input.astype(np.float32)}, "padding-ignored"


@fault
def conv_transposed_weight() -> Fault:
    run = conv()
    wrong = named(run, run.again(weight=run.given["weight"].swapaxes(0, 1)), "gradInput")
    return run, {**wrong, "gradWeight": run.arrays["gradWeight"].swapaxes(0, 1)}, "transposed-weight"


@fault
def conv_transposed_weight_of_another_shape() -> Fault:
    run = conv(in_channels=4, out_channels=6)
    right = run.arrays["gradWeight"]
    return run, {"gradWeight": np.ascontiguousarray(right.swapaxes(0, 1)).reshape(right.shape)}, "transposed-weight"


@fault
def tbc_transposed_weight() -> Fault:
    run = tbc()
    wrong = named(run, run.again(weight=run.given["weight"].swapaxes(1, 2)), "gradInput")
    return run, {**wrong, "gradWeight": run.arrays["gradWeight"].swapaxes(1, 2)}, "transposed-weight"


# Gates and parameters


def _igfo(array: Array, axis: int = 0) -> Array:
    i, f, g, o = np.split(array, 4, axis)
    return np.concatenate([i, g, f, o], axis)


@fault
def lstm_gate_order() -> Fault:
    run = lstm()
    dx, dh, dc, dparams = run.again(params=[_igfo(p) for p in run.given["params"]])
    wrong = named(run, (dx, dh, dc, [_igfo(p) for p in dparams]), "dxOut", "dhPrevOut", "dparamsOut")
    return run, wrong, "gate-order"


@fault
def lstm_gate_order_of_the_gradients() -> Fault:
    run = lstm()
    return run, {f"dparamsOut[{i}]": _igfo(p) for i, p in enumerate(run.arrays["dparamsOut"])}, "gate-order"


@fault
def lstm_lists_exchanged() -> Fault:
    run = lstm(layers=1, bidirectional=False)
    wrong = run.again(g=run.given["f"], f=run.given["g"])
    return run, named(run, wrong, "dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut"), "gate-order"


@fault
def cell_gate_order() -> Fault:
    run = cell()
    gates, cx, bias = run.again(storage=_igfo(run.given["storage"], 1))
    return run, {"gradGatesOut": _igfo(gates, 1), "gradCxOut": cx, "gradBiasOut": _igfo(bias)}, "gate-order"


@fault
def cell_gate_order_of_the_gradients() -> Fault:
    run = cell(dtype=FLOAT16)
    gates, bias = run.arrays["gradGatesOut"], run.arrays["gradBiasOut"]
    return run, {"gradGatesOut": _igfo(gates, 1), "gradBiasOut": _igfo(bias)}, "gate-order"


@fault
def lstm_missing_bias_of_the_reverse_direction() -> Fault:
    run = lstm()
    dparams = run.arrays["dparamsOut"]  # w_ih, w_hh, b_ih, b_hh, forward then reverse, per layer
    return run, {f"dparamsOut[{i}]": np.zeros_like(dparams[i]) for i in (6, 7, 14, 15)}, "missing-bias"


@fault
def lstm_forward_missing_bias_of_the_reverse_direction() -> Fault:
    run = planted("aclnnLSTM", steps=4, batch=2, input_size=3, hidden_size=4, bidirectional=True)
    params = run.given["params"]
    wrong = run.again(params=[*params[:6], np.zeros_like(params[6]), np.zeros_like(params[7])])
    return run, named(run, wrong, *(a.name for a in run.op.outputs)), "missing-bias"


@fault
def cell_forward_gate_order() -> Fault:
    run = planted("aclnnThnnFusedLstmCell", batch=6, hidden_size=5)
    gated = {n: _igfo(v, v.ndim - 1) for n, v in run.inputs().items() if n in ("input_gates", "hidden_gates")}
    biases = {n: _igfo(v) for n, v in run.inputs().items() if v is not None and n in ("input_bias", "hidden_bias")}
    hy, cy, storage = run.again(**gated, **biases)
    return run, {"hyOut": hy, "cyOut": cy, "storageOut": _igfo(storage, 1)}, "gate-order"


@fault
def lstm_transposed_weight() -> Fault:
    """w_hh [4H, H] is read as if it were stored [H, 4H]."""
    run = lstm(layers=1, bidirectional=False)
    w_ih, w_hh, *biases = run.given["params"]
    wrong = run.again(params=[w_ih, np.ascontiguousarray(w_hh.reshape(4, 16).T), *biases])
    return run, named(run, wrong, "dxOut", "dhPrevOut", "dcPrevOut", "dparamsOut"), "transposed-weight"


@fault
def lstm_transposed_weight_gradient() -> Fault:
    run = lstm()
    right = run.arrays["dparamsOut"][1]
    return run, {"dparamsOut[1]": np.ascontiguousarray(right.T).reshape(right.shape)}, "transposed-weight"


# ELU


@fault
def elu_is_result() -> Fault:
    run = planted("aclnnEluBackward", shape=(20, 30), is_result=True)
    return run, named(run, run.again(is_result=False), "gradInput"), "is-result"


@fault
def elu_input_scale_ignored() -> Fault:
    run = planted("aclnnEluBackward", shape=(20, 30), input_scale=0.5, dtype=BFLOAT16)
    return run, named(run, run.again(input_scale=1.0), "gradInput"), "inputScale-ignored"


@fault
def elu_forward_alpha_ignored() -> Fault:
    run = planted("aclnnElu", shape=(20, 30), alpha=1.5)
    return run, named(run, run.again(alpha=1.0), "out"), "alpha-ignored"


# Never written


@fault
def conv_bias_not_written() -> Fault:
    run = conv()
    return run, {"gradBias": np.zeros(6, np.float32)}, "not-written"


@fault
def cell_bias_not_written() -> Fault:
    run = cell(device=CPU, dtype=FLOAT32)
    return run, {"gradBiasOut": np.zeros(32, np.float32)}, "not-written"


# Partial sums: one matrix product for each picture, added into the result itself


@fault
def conv_float16_partial_sums() -> Fault:
    run = conv(batch=9, kernel=(1, 5), size=(5, 9), padding=0, dtype=FLOAT16)
    return run, product_by_picture(run), "float16-partial-sums"


@fault
def conv_bfloat16_partial_sums() -> Fault:
    run = conv(batch=9, kernel=(1, 5), size=(5, 9), padding=0, dtype=BFLOAT16)
    return run, product_by_picture(run), "bfloat16-partial-sums"
