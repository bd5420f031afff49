// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_ELU_BACKWARD_H
#define ACLNN_CPU_ACLNNOP_ACLNN_ELU_BACKWARD_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gradient of the ELU activation.
//
//   gradOutput (in): Gradient of the forward's output, g.
//   alpha (in): The coefficient of the negative branch.
//   scale (in): The scale of both branches.
//   inputScale (in): The scale of the input of exp.
//   isResult (in): Whether selfOrResult is the forward's output (true) or input (false).
//   selfOrResult (in): The forward's output if isResult, else its input.
//   gradInput (out): Gradient of the forward's input.
ACLNN_CPU_API aclnnStatus aclnnEluBackwardGetWorkspaceSize(
    const aclTensor* gradOutput,
    const aclScalar* alpha,
    const aclScalar* scale,
    const aclScalar* inputScale,
    bool isResult,
    const aclTensor* selfOrResult,
    aclTensor* gradInput,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnEluBackward(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
