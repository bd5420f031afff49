// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_CONVOLUTION_H
#define ACLNN_CPU_ACLNNOP_ACLNN_CONVOLUTION_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// A convolution in one, two or three dimensions, plain or transposed.
//
//   input (in): The input: batch, input channels, spatial axes.
//   weight (in): The kernel: output channels, input channels per group, spatial axes; transposed: input channels, output channels per group, spatial axes.
//   bias (in, may be null): What is added to each output channel; null is nothing.
//   stride (in): The step of the kernel, per axis.
//   padding (in): Padding of both ends, per axis; in 2-D also up, down, left, right.
//   dilation (in): The distance of kernel taps, per axis.
//   transposed (in): Whether the convolution is a transposed one.
//   outputPadding (in): What is added to one end of the output of a transposed convolution, per axis.
//   groups (in): How many groups the channels form.
//   output (out): The result: batch, output channels, spatial axes.
//   cubeMathType (in): How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
ACLNN_CPU_API aclnnStatus aclnnConvolutionGetWorkspaceSize(
    const aclTensor* input,
    const aclTensor* weight,
    const aclTensor* bias,
    const aclIntArray* stride,
    const aclIntArray* padding,
    const aclIntArray* dilation,
    bool transposed,
    const aclIntArray* outputPadding,
    int64_t groups,
    aclTensor* output,
    int8_t cubeMathType,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnConvolution(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

// A convolution over time.
//
//   self (in): The input: time, batch, input channels.
//   weight (in): The kernel: taps, input channels, output channels.
//   bias (in): What is added to each output channel.
//   pad (in): Steps of padding on both ends of the time axis.
//   output (out): The result: time, batch, output channels.
//   cubeMathType (in): How float32 inputs are rounded first: 0 not at all, 1 and 3 to HF32, 2 to float16.
ACLNN_CPU_API aclnnStatus aclnnConvTbcGetWorkspaceSize(
    const aclTensor* self,
    const aclTensor* weight,
    const aclTensor* bias,
    int64_t pad,
    aclTensor* output,
    int8_t cubeMathType,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnConvTbc(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
