"""LSTM forwards on compiled loops and matrix products: float32, float16 and bfloat16, sequences of any length.

Per layer and direction: one product over the whole sequence, x·w_ihᵀ; then a walk over the steps adds h·w_hhᵀ and
applies the gates. Between layers states stay float32, whatever they are rounded to in the lists.
"""

from __future__ import annotations

from collections.abc import Callable

from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import dense
from aclnn.contract.call import Call
from aclnn.kernels import convert, jit, lstm_on_onednn, onednn
from aclnn.kernels.lstm_fast import FEW, gives_way
from aclnn.kernels.lstm_forward_execution import Execution, Facts, Memory, Plan
from aclnn.kernels.lstm_on_tiles import TILES
from aclnn.kernels.lstm_products import Engine
from aclnn.kernels.lstm_walk import Sizes
from aclnn.kernels.program import Recent
from aclnn.kernels.registry import Prepared, Refusal, kernel

SIDE_BY_SIDE = ("output", "iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut")

memories: Recent[Memory] = Recent(lambda memory: memory.primitives)


def sizes_of(call: Call) -> Sizes:
    steps, batch, features = call["input"].shape
    if call["batchFirst"]:
        steps, batch = batch, steps
    directions = 2 if call["bidirectional"] else 1
    return Sizes(steps, batch, features, call["params"][1].shape[1], call["numLayers"], directions)


def too_small(call: Call) -> str | None:
    s = sizes_of(call)
    products = s.rows * 4 * s.hidden * (s.hidden + s.features)
    return f"{products} products are fewer than {FEW}" if products < FEW else None


@kernel("aclnnLSTM", "tiles", engine="fast", too_small=too_small, gives_way=gives_way)
def lstm_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    return _prepared(call, threads, lambda: TILES)


@kernel("aclnnLSTM", "onednn", engine="fast", too_small=too_small)
def lstm_fast(call: Call, threads: int) -> Prepared | Refusal:
    return _prepared(call, threads, lstm_on_onednn.engine)


def _prepared(call: Call, threads: int, engine: Callable[[], Engine]) -> Prepared | Refusal:
    if call["input"].dtype not in jit.POINTER:
        return Refusal("it takes float32, float16 and bfloat16")
    if call["input"].is_empty or call["params"][1].is_empty:
        return Refusal("a tensor is empty")
    for name in SIDE_BY_SIDE:
        if any(spec.strides[-1] != 1 and spec.shape[-1] != 1 for spec in call.specs(name)):
            return Refusal(f"the features of {name} do not lie side by side")
    try:
        plan = _plan(call, engine(), threads)
        size = plan.memory.arena.size
    except (onednn.OneDnnError, jit.NoNativeCodeError) as reason:
        return Refusal(str(reason))
    return Prepared(lambda: Execution(plan).run, size)


def _plan(call: Call, engine: Engine, threads: int) -> Plan:
    sizes, dtype = sizes_of(call), call["input"].dtype
    usable = dtype is FLOAT32 and not call["batchFirst"] and call["input"].is_contiguous
    gathers = not usable or call["batchSizes"] is not None
    copies = [
        None
        if s.rank == 1 or (dtype is FLOAT32 and s.is_contiguous)
        else convert.plan(s, dense(FLOAT32, s.shape), threads)
        for s in call["params"]
    ]
    facts = Facts(sizes, gathers, any(c is not None for c in copies), engine, threads)
    letter = jit.POINTER[dtype]
    gather = jit.load("lstm.gather", f"{letter}iii{letter}iiiFiiiiI")
    below, top = (jit.load("lstm_forward.gates", f"F{out}{letter * 7}FFFIiii") for out in ("F", letter))
    walk = jit.load("lstm_forward.walk", "IIII")
    return Plan(call, facts, memories.get(facts, lambda: Memory(facts)), gather, below, top, walk, tuple(copies))
