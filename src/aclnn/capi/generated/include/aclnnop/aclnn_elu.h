// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACLNNOP_ACLNN_ELU_H
#define ACLNN_CPU_ACLNNOP_ACLNN_ELU_H

#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The ELU activation.
//
//   self (in): The input, x.
//   alpha (in): The coefficient of the negative branch.
//   scale (in): The scale of both branches.
//   inputScale (in): The scale of the input of exp.
//   out (out): The result, y.
ACLNN_CPU_API aclnnStatus aclnnEluGetWorkspaceSize(
    const aclTensor* self,
    const aclScalar* alpha,
    const aclScalar* scale,
    const aclScalar* inputScale,
    aclTensor* out,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnElu(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

// The ELU activation, written over its input.
//
//   selfRef (in and out): The input x, then the result y.
//   alpha (in): The coefficient of the negative branch.
//   scale (in): The scale of both branches.
//   inputScale (in): The scale of the input of exp.
ACLNN_CPU_API aclnnStatus aclnnInplaceEluGetWorkspaceSize(
    aclTensor* selfRef,
    const aclScalar* alpha,
    const aclScalar* scale,
    const aclScalar* inputScale,
    uint64_t* workspaceSize,
    aclOpExecutor** executor);
ACLNN_CPU_API aclnnStatus aclnnInplaceElu(
    void* workspace,
    uint64_t workspaceSize,
    aclOpExecutor* executor,
    aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
