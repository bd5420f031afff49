"""LSTM on compiled loops and matrix products: float32, float16 and bfloat16, sequences of any length.

Per layer and direction: a loop over the steps makes the gradients of the gates, [T·B, 4H] in float32, with one small
product per step; then three products over the whole sequence make dx and the gradients of the weights.
"""

from __future__ import annotations

from aclnn.contract.call import Call
from aclnn.kernels.lstm.execution import backward_run
from aclnn.kernels.lstm.plan import BackwardPlan, sizes_of
from aclnn.kernels.native import jit
from aclnn.kernels.registry import Prepared, Refusal, kernel

MOST_SEQUENCES = 65_536  # whose sums of a step lie in the workspace, 64 units of each gate at a time
UNIT_STRIDE = ("dy", "i", "g", "f", "o", "c", "tanhc")


@kernel("aclnnLstmBackward", "tiles", engine="fast")
def lstm_backward_on_tiles(call: Call, threads: int) -> Prepared | Refusal:
    if (reason := _not_taken(call)) is not None:
        return Refusal(reason)
    try:
        plan = BackwardPlan(call, threads)
    except jit.NoNativeCodeError as error:
        return Refusal(str(error))
    return Prepared(lambda: backward_run(plan), plan.arena.size)


def _not_taken(call: Call) -> str | None:
    if call["input"].dtype not in jit.POINTER:
        return "it takes float32, float16 and bfloat16"
    if call["input"].is_empty or call["i"][0].is_empty:
        return "a tensor is empty"
    if (reason := too_many_sequences(sizes_of(call).batch)) is not None:
        return reason
    for name in UNIT_STRIDE:
        if any(spec.strides[-1] != 1 and spec.shape[-1] != 1 for spec in call.specs(name)):
            return f"the features of {name} do not lie side by side"
    if call["hx"][1].strides[-1] != 1 and call["hx"][1].shape[-1] != 1:
        return "the features of hx[1] do not lie side by side"
    return None


def too_many_sequences(batch: int) -> str | None:
    return f"{batch} sequences are more than {MOST_SEQUENCES}" if batch > MOST_SEQUENCES else None
