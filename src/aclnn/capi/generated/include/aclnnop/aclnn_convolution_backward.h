// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_CONVOLUTION_BACKWARD_H
#define ACLNN_CPU_ACLNNOP_ACLNN_CONVOLUTION_BACKWARD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gradients of a convolution: of its input, its weight and its bias, as asked for.
//
//   gradOutput (in): Gradient of the forward's output: batch, output channels, spatial axes.
//   input (in): The forward's input: batch, input channels, spatial axes.
//   weight (in): The kernel: output channels, input channels per group, spatial axes; transposed: input channels, output channels per group, spatial axes.
//   biasSizes (in): The shape of the bias: its number of channels. Read only if outputMask[2].
//   stride (in): The step of the kernel, per axis.
//   padding (in): Padding of both ends, per axis; in 2-D also up, down, left, right.
//   dilation (in): The distance of kernel taps, per axis.
//   transposed (in): Whether the convolution is a transposed one.
//   outputPadding (in): What is added to one end of the output of a transposed convolution, per axis.
//   groups (in): How many groups the channels form.
//   outputMask (in): Which gradients are wanted: of input, weight, bias.
//   cubeMathType (in): How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
//   gradInput (out): Gradient of input. Written only if outputMask[0].
//   gradWeight (out): Gradient of weight. Written only if outputMask[1].
//   gradBias (out): Gradient of the bias. Written only if outputMask[2].
ACLNN_CPU_API aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
    const aclTensor* gradOutput,
    const aclTensor* input,
    const aclTensor* weight,
    const aclIntArray* biasSizes,
    const aclIntArray* stride,
    const aclIntArray* padding,
    const aclIntArray* dilation,
    bool transposed,
    const aclIntArray* outputPadding,
    int groups,
    const aclBoolArray* outputMask,
    int8_t cubeMathType,
    aclTensor* gradInput,
    aclTensor* gradWeight,
    aclTensor* gradBias,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnConvolutionBackward(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

// Gradients of a convolution over time: of its input, its weight and its bias.
//
//   self (in): Gradient of the forward's output: time, batch, output channels.
//   input (in): The forward's input: time, batch, input channels.
//   weight (in): The kernel: taps, input channels, output channels.
//   bias (in): The forward's bias, of which only dtype and size matter.
//   pad (in): Steps of padding on both ends of the time axis.
//   cubeMathType (in): How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
//   gradInput (out): Gradient of input.
//   gradWeight (out): Gradient of weight.
//   gradBias (out): Gradient of bias.
ACLNN_CPU_API aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(
    const aclTensor* self,
    const aclTensor* input,
    const aclTensor* weight,
    const aclTensor* bias,
    int64_t pad,
    int8_t cubeMathType,
    aclTensor* gradInput,
    aclTensor* gradWeight,
    aclTensor* gradBias,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnConvTbcBackward(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
