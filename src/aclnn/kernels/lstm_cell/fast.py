"""The LSTM cell on compiled loops: float32, float16 and bfloat16."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.call import Call
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import ADDITIONS, CELL_TILE, COLUMN_TILE
from aclnn.kernels.native.memory import LINE, address, aligned
from aclnn.kernels.native.threads import LaunchedRun, Work, worth
from aclnn.kernels.registry import Prepared, Refusal, Run, kernel
from aclnn.kernels.shared import convert
from aclnn.kernels.shared.workspace import Arena

PER_THREAD = 4096  # that pay for waking a thread
PARTIALS = 14  # the argument of lstm_cell.backward that lies in the workspace
FORWARD_TENSORS = (
    "inputGates",
    "hiddenGates",
    "cx",
    "inputBiasOptional",
    "hiddenBiasOptional",
    "hyOut",
    "cyOut",
    "storageOut",
)
TENSORS = ("gradHyOptional", "gradCOptional", "cx", "cy", "storage", "gradGatesOut", "gradCxOut")
BIAS = len(TENSORS)  # comes behind them


@kernel("aclnnThnnFusedLstmCellBackward", "numba", engine="fast")
def thnn_fused_lstm_cell_backward_fast(call: Call, threads: int) -> Prepared | Refusal:
    specs: list[TensorSpec | None] = [call[name] for name in TENSORS]
    cx: TensorSpec = call["cx"]
    if cx.dtype not in jit.POINTER or cx.is_empty:
        return Refusal("it takes float32, float16 and bfloat16, and no empty tensor")
    if apart := [name for name in ("gradGatesOut", "gradCxOut") if _column_stride(call[name]) != 1]:
        return _on_copies(thnn_fused_lstm_cell_backward_fast, call, threads, TENSORS, apart)
    try:
        entry = jit.load("lstm_cell.backward", jit.POINTER[cx.dtype] * 8 + "IiiiiiFi")
        join = jit.load("lstm_cell.join", jit.POINTER[cx.dtype] + "Fiii")
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))
    (batch, hidden), bias = cx.shape, call["gradBiasOut"] if call["hasBias"] else None
    strides = [s.strides[0] if s is not None else 0 for s in specs] + [bias.strides[0] if bias is not None else 0]
    table = (ctypes.c_int64 * 13)(*strides, *map(_column_stride, specs[:5]))
    given = [call["gradHyOptional"] is not None, call["gradCOptional"] is not None, bias is not None]
    parts, tiles, columns = -(-batch // ADDITIONS), -(-hidden // CELL_TILE), 4 * hidden
    arguments = [0] * 8 + [ctypes.addressof(table), batch, hidden, *map(int, given), 0, parts]
    team, places = worth(cx.size, PER_THREAD, threads), range(8) if None in (*specs, bias) else None

    def work() -> Work:
        return Work(entry, parts * tiles, 1, arguments, team, table)

    if bias is None or parts == 1:
        return Prepared(lambda: LaunchedRun(work, places), is_launches=True)
    added = [0, 0, columns, parts, bias.strides[0]]

    def adding() -> Work:
        return Work(join, -(-columns // COLUMN_TILE), 1, added, worth(columns * parts, PER_THREAD, threads))

    return Prepared(lambda: _cells_and_bias(work, places, adding), 4 * parts * columns + LINE, is_launches=True)


def _cells_and_bias(work: Callable[[], Work], places: Sequence[int] | None, adding: Callable[[], Work]) -> Run:
    """Two launches one after the other: what parts of the batch add up, the second joins."""
    cells, bias = LaunchedRun(work, places, PARTIALS), LaunchedRun(adding, (BIAS,), 1)

    def run(workspace: Array | None, *tensors: Array | None) -> None:
        cells(workspace, *tensors)
        bias(workspace, *tensors)

    return run


@kernel("aclnnThnnFusedLstmCell", "numba", engine="fast")
def thnn_fused_lstm_cell_fast(call: Call, threads: int) -> Prepared | Refusal:
    specs: list[TensorSpec | None] = [call[name] for name in FORWARD_TENSORS]
    cx: TensorSpec = call["cx"]
    if cx.dtype not in jit.POINTER or cx.is_empty:
        return Refusal("it takes float32, float16 and bfloat16, and no empty tensor")
    if apart := [name for name, spec in zip(FORWARD_TENSORS, specs, strict=True) if _column_stride(spec) != 1]:
        return _on_copies(thnn_fused_lstm_cell_fast, call, threads, FORWARD_TENSORS, apart)
    try:
        entry = jit.load("lstm_cell.forward", jit.POINTER[cx.dtype] * 8 + "Iii")
    except jit.NoNativeCodeError as reason:
        return Refusal(str(reason))
    table = (ctypes.c_int64 * 8)(*(0 if spec is None else spec.strides[0] for spec in specs))
    (batch, hidden), has_bias = cx.shape, int(call["inputBiasOptional"] is not None)
    arguments, team = [0] * 8 + [ctypes.addressof(table), hidden, has_bias], worth(cx.size, PER_THREAD, threads)

    def work() -> Work:
        return Work(entry, batch, 1, arguments, team, table)

    return Prepared(lambda: LaunchedRun(work, range(8) if None in specs else None), is_launches=True)


def _column_stride(spec: TensorSpec | None) -> int:
    """From column to column; 1 where there is one column at most."""
    return 1 if spec is None or spec.shape[-1] == 1 else spec.strides[-1]


def _on_copies(
    plan: Callable[[Call, int], Prepared | Refusal],
    call: Call,
    threads: int,
    tensors: Sequence[str],
    apart: Sequence[str],
) -> Prepared | Refusal:
    """The call with dense copies, in the workspace, of tensors whose columns do not lie side by side."""
    met = {name: dense(call[name].dtype, call[name].shape) for name in apart}
    prepared, arena = plan(replace(call, values={**call.values, **met}), threads), Arena()
    if isinstance(prepared, Refusal):
        return prepared
    arena.reserve(prepared.workspace_size)
    places = {name: arena.reserve(spec.size * spec.dtype.itemsize) for name, spec in met.items()}
    copies = {name: _planned(call[name], spec, name.endswith("Out"), threads) for name, spec in met.items()}

    def instantiate() -> Run:
        run, works = prepared.instantiate(), {name: copy.work() for name, copy in copies.items()}

        def copied(workspace: Array, *given: Array | None) -> None:
            ours, begin = list(given), aligned(address(workspace)) - address(workspace)
            for name, spec in met.items():
                start = begin + places[name]
                bytes_ = workspace[start : start + spec.size * spec.dtype.itemsize]
                ours[tensors.index(name)] = np.ndarray(spec.shape, spec.dtype.numpy, bytes_)
            _copy(works, tensors, given, ours, inwards=True)
            run(workspace, *ours)
            _copy(works, tensors, given, ours, inwards=False)

        return copied

    return Prepared(instantiate, arena.size)


def _planned(outside: TensorSpec, inside: TensorSpec, goes_out: bool, threads: int) -> convert.Copy:
    return convert.plan(inside, outside, threads) if goes_out else convert.plan(outside, inside, threads)


def _copy(
    works: dict[str, Work],
    tensors: Sequence[str],
    given: Sequence[Array | None],
    ours: Sequence[Array | None],
    inwards: bool,
) -> None:
    """Inputs to our copies, or outputs from them."""
    for name, work in works.items():
        outside, inside = given[tensors.index(name)], ours[tensors.index(name)]
        assert outside is not None
        assert inside is not None
        if inwards != name.endswith("Out"):
            work.point(0, *((address(outside), address(inside)) if inwards else (address(inside), address(outside))))
            work.run()
