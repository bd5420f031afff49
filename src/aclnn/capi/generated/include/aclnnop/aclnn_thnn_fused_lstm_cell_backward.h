// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_BACKWARD_H
#define ACLNN_CPU_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_BACKWARD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gradient of the LSTM cell behind its matrix products: of the four gates, the cell state and the bias.
//
//   gradHyOptional (in, may be null): Gradient of the hidden state hy, [B, H]; null is zeros.
//   gradCOptional (in, may be null): Gradient of the new cell state cy, [B, H]; null is zeros.
//   cx (in): The old cell state, [B, H].
//   cy (in): The new cell state, [B, H].
//   storage (in): The activated gates i, f, g, o side by side, [B, 4H].
//   hasBias (in): Whether gradBiasOut is computed; if not it may be null and is never written.
//   gradGatesOut (out): Gradient of the gates before activation, [B, 4H].
//   gradCxOut (out): Gradient of the old cell state, [B, H].
//   gradBiasOut (out): Gradient of the bias, [4H].
ACLNN_CPU_API aclnnStatus aclnnThnnFusedLstmCellBackwardGetWorkspaceSize(
    const aclTensor* gradHyOptional,
    const aclTensor* gradCOptional,
    const aclTensor* cx,
    const aclTensor* cy,
    const aclTensor* storage,
    bool hasBias,
    aclTensor* gradGatesOut,
    aclTensor* gradCxOut,
    aclTensor* gradBiasOut,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnThnnFusedLstmCellBackward(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
