// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_LSTM_BACKWARD_H
#define ACLNN_CPU_ACLNNOP_ACLNN_LSTM_BACKWARD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gradient of an LSTM: of its input, its initial state and its parameters.
//
//   input (in): The input sequences, [T, B, I], or [B, T, I] if batchFirst; with batchSizesOptional also [T·B, I].
//   hx (in): The initial state: h0 and c0, [L·D, B, H] each, at index layer·D + direction.
//   params (in): Weights and biases, per layer and direction: w_ih, w_hh, then b_ih, b_hh if hasBias; rows i, f, g, o.
//   dy (in): Gradient of the top layer's output, laid out as input, forward half first.
//   dh (in): Gradient of the last hidden states.
//   dc (in): Gradient of the last cell states.
//   i (in): Input gates, one [T, B, H] per layer and direction.
//   g (in): Candidate cell states, one [T, B, H] per layer and direction.
//   f (in): Forget gates, one [T, B, H] per layer and direction.
//   o (in): Output gates, one [T, B, H] per layer and direction.
//   h (in): Hidden states, one [T, B, H] per layer and direction.
//   c (in): Cell states, one [T, B, H] per layer and direction.
//   tanhc (in): tanh of the cell states, used as given, one [T, B, H] per layer and direction.
//   batchSizesOptional (in, may be null): How many sequences take part in each step, [T], not increasing; null: all of them.
//   hasBias (in): Whether params holds biases.
//   numLayers (in): The number of layers, L.
//   dropout (in): Dropout between layers. It does not change the gradient: the mask is no argument.
//   train (in): Whether the forward ran in training. It does not change the gradient.
//   bidirectional (in): Whether there is a reverse direction too: D = 2, else 1.
//   batchFirst (in): Whether input, dy and dxOut have the batch first.
//   outputMask (in, may be null): Four flags, accepted and ignored: every gradient is computed.
//   dxOut (out): Gradient of input.
//   dhPrevOut (out): Gradient of h0.
//   dcPrevOut (out): Gradient of c0.
//   dparamsOut (out): Gradients of params, in its order.
ACLNN_CPU_API aclnnStatus aclnnLstmBackwardGetWorkspaceSize(
    const aclTensor* input,
    const aclTensorList* hx,
    const aclTensorList* params,
    const aclTensor* dy,
    const aclTensor* dh,
    const aclTensor* dc,
    const aclTensorList* i,
    const aclTensorList* g,
    const aclTensorList* f,
    const aclTensorList* o,
    const aclTensorList* h,
    const aclTensorList* c,
    const aclTensorList* tanhc,
    const aclTensor* batchSizesOptional,
    bool hasBias,
    int64_t numLayers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batchFirst,
    const aclBoolArray* outputMask,
    aclTensor* dxOut,
    aclTensor* dhPrevOut,
    aclTensor* dcPrevOut,
    aclTensorList* dparamsOut,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnLstmBackward(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
