// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_LSTM_H
#define ACLNN_CPU_ACLNNOP_ACLNN_LSTM_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// An LSTM over whole sequences, with what its backward needs.
//
//   input (in): The input sequences, [T, B, I], or [B, T, I] if batchFirst; with batchSizes also [T·B, I].
//   params (in): Weights and biases, per layer and direction: w_ih, w_hh, then b_ih, b_hh if hasBias; rows i, f, g, o.
//   hx (in, may be null): The initial state: h0 and c0, [L·D, B, H] each, at index layer·D + direction; null is zeros.
//   batchSizes (in, may be null): How many sequences take part in each step, [T], not increasing; null: all of them.
//   hasBias (in): Whether params holds biases.
//   numLayers (in): The number of layers, L.
//   dropout (in): Dropout between layers; in training it must be 0, since the backward could not undo it.
//   train (in): Whether the seven lists are written.
//   bidirectional (in): Whether there is a reverse direction too: D = 2, else 1.
//   batchFirst (in): Whether input and output have the batch first.
//   output (out): The hidden states of the top layer, laid out as input, forward half first.
//   hy (out): The last hidden states.
//   cy (out): The last cell states.
//   iOut (out): Input gates, one [T, B, H] per layer and direction; written when train.
//   jOut (out): Candidate cell states, one [T, B, H] per layer and direction; written when train.
//   fOut (out): Forget gates, one [T, B, H] per layer and direction; written when train.
//   oOut (out): Output gates, one [T, B, H] per layer and direction; written when train.
//   hOut (out): Hidden states, one [T, B, H] per layer and direction; written when train.
//   cOut (out): Cell states, one [T, B, H] per layer and direction; written when train.
//   tanhCOut (out): tanh of the cell states, one [T, B, H] per layer and direction; written when train.
ACLNN_CPU_API aclnnStatus aclnnLSTMGetWorkspaceSize(
    const aclTensor* input,
    const aclTensorList* params,
    const aclTensorList* hx,
    const aclTensor* batchSizes,
    bool hasBias,
    int64_t numLayers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batchFirst,
    aclTensor* output,
    aclTensor* hy,
    aclTensor* cy,
    aclTensorList* iOut,
    aclTensorList* jOut,
    aclTensorList* fOut,
    aclTensorList* oOut,
    aclTensorList* hOut,
    aclTensorList* cOut,
    aclTensorList* tanhCOut,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnLSTM(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
