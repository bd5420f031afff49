"""LSTM forwards on compiled loops and matrix products: float32, float16 and bfloat16, sequences of any length.

Per layer and direction a loop over the steps: the product x·w_ihᵀ for some of them, then for each h·w_hhᵀ, to which it
is added, and the gates. Between layers states stay float32, whatever they are rounded to in the lists.
"""

from __future__ import annotations

from aclnn.contract.call import Call
from aclnn.kernels.lstm.fast import too_many_sequences
from aclnn.kernels.lstm.forward_execution import LISTS, ForwardPlan, forward_run, sizes_of
from aclnn.kernels.native import jit
from aclnn.kernels.registry import Prepared, Refusal, kernel


@kernel("aclnnLSTM", "tiles", engine="fast")
def lstm_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    if call["input"].dtype not in jit.POINTER:
        return Refusal("it takes float32, float16 and bfloat16")
    if call["input"].is_empty or call["params"][1].is_empty:
        return Refusal("a tensor is empty")
    if (reason := too_many_sequences(sizes_of(call).batch)) is not None:
        return Refusal(reason)
    for name in ("output", *(LISTS if call["train"] else ())):
        if any(spec.strides[-1] != 1 and spec.shape[-1] != 1 for spec in call.specs(name)):
            return Refusal(f"the features of {name} do not lie side by side")
    try:
        plan = ForwardPlan(call, threads)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))
    return Prepared(lambda: forward_run(plan), plan.arena.size)
