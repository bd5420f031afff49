// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_H
#define ACLNN_CPU_ACLNNOP_ACLNN_THNN_FUSED_LSTM_CELL_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The LSTM cell behind its matrix products: new states, and the activated gates for the backward.
//
//   inputGates (in): x·w_ihᵀ, [B, 4H], columns i, f, g, o.
//   hiddenGates (in): h·w_hhᵀ, [B, 4H].
//   cx (in): The old cell state, [B, H].
//   inputBiasOptional (in, may be null): b_ih, [4H].
//   hiddenBiasOptional (in, may be null): b_hh, [4H].
//   hyOut (out): The new hidden state, [B, H].
//   cyOut (out): The new cell state, [B, H].
//   storageOut (out): The activated gates i, f, g, o side by side, [B, 4H].
ACLNN_CPU_API aclnnStatus aclnnThnnFusedLstmCellGetWorkspaceSize(
    const aclTensor* inputGates,
    const aclTensor* hiddenGates,
    const aclTensor* cx,
    const aclTensor* inputBiasOptional,
    const aclTensor* hiddenBiasOptional,
    aclTensor* hyOut,
    aclTensor* cyOut,
    aclTensor* storageOut,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnThnnFusedLstmCell(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
