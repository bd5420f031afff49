// Written by `make gen` from the contracts; do not edit.
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_lstm.h"
#include "aclnnop/aclnn_lstm_backward.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell_backward.h"
#include "planning.h"

using namespace aclnn_cpu;

namespace {

const Operator kEluBackward = {0, "aclnnEluBackward"};
const Operator kElu = {1, "aclnnElu"};
const Operator kInplaceElu = {2, "aclnnInplaceElu"};
const Operator kConvolutionBackward = {3, "aclnnConvolutionBackward"};
const Operator kConvolution = {4, "aclnnConvolution"};
const Operator kConvTbcBackward = {5, "aclnnConvTbcBackward"};
const Operator kConvTbc = {6, "aclnnConvTbc"};
const Operator kLstmBackward = {7, "aclnnLstmBackward"};
const Operator kLSTM = {8, "aclnnLSTM"};
const Operator kThnnFusedLstmCellBackward = {9, "aclnnThnnFusedLstmCellBackward"};
const Operator kThnnFusedLstmCell = {10, "aclnnThnnFusedLstmCell"};

}  // namespace

extern "C" {

aclnnStatus aclnnEluBackwardGetWorkspaceSize(
    const aclTensor* gradOutput,
    const aclScalar* alpha,
    const aclScalar* scale,
    const aclScalar* inputScale,
    bool isResult,
    const aclTensor* selfOrResult,
    aclTensor* gradInput,
    uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnEluBackward", [&] {
    return Planning(kEluBackward, workspaceSize, executor, call_site)
        .in("gradOutput", gradOutput)
        .scalar("alpha", alpha)
        .scalar("scale", scale)
        .scalar("inputScale", inputScale)
        .flag(isResult)
        .in("selfOrResult", selfOrResult)
        .out("gradInput", gradInput)
        .plan();
  });
}

aclnnStatus aclnnEluBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnEluBackward", [&] {
    return run_operator(kEluBackward, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnEluGetWorkspaceSize(
    const aclTensor* self,
    const aclScalar* alpha,
    const aclScalar* scale,
    const aclScalar* inputScale,
    aclTensor* out,
    uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnElu", [&] {
    return Planning(kElu, workspaceSize, executor, call_site)
        .in("self", self)
        .scalar("alpha", alpha)
        .scalar("scale", scale)
        .scalar("inputScale", inputScale)
        .out("out", out)
        .plan();
  });
}

aclnnStatus aclnnElu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnElu", [&] {
    return run_operator(kElu, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnInplaceEluGetWorkspaceSize(
    aclTensor* selfRef,
    const aclScalar* alpha,
    const aclScalar* scale,
    const aclScalar* inputScale,
    uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnInplaceElu", [&] {
    return Planning(kInplaceElu, workspaceSize, executor, call_site)
        .in_out("selfRef", selfRef)
        .scalar("alpha", alpha)
        .scalar("scale", scale)
        .scalar("inputScale", inputScale)
        .plan();
  });
}

aclnnStatus aclnnInplaceElu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnInplaceElu", [&] {
    return run_operator(kInplaceElu, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(
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
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnConvolutionBackward", [&] {
    return Planning(kConvolutionBackward, workspaceSize, executor, call_site)
        .in("gradOutput", gradOutput)
        .in("input", input)
        .in("weight", weight)
        .integers("biasSizes", biasSizes)
        .integers("stride", stride)
        .integers("padding", padding)
        .integers("dilation", dilation)
        .flag(transposed)
        .integers("outputPadding", outputPadding)
        .integer(groups)
        .flags("outputMask", outputMask)
        .integer(cubeMathType)
        .out("gradInput", gradInput)
        .out("gradWeight", gradWeight)
        .out("gradBias", gradBias)
        .plan();
  });
}

aclnnStatus aclnnConvolutionBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnConvolutionBackward", [&] {
    return run_operator(kConvolutionBackward, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnConvolutionGetWorkspaceSize(
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
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnConvolution", [&] {
    return Planning(kConvolution, workspaceSize, executor, call_site)
        .in("input", input)
        .in("weight", weight)
        .in("bias", bias)
        .integers("stride", stride)
        .integers("padding", padding)
        .integers("dilation", dilation)
        .flag(transposed)
        .integers("outputPadding", outputPadding)
        .integer(groups)
        .out("output", output)
        .integer(cubeMathType)
        .plan();
  });
}

aclnnStatus aclnnConvolution(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnConvolution", [&] {
    return run_operator(kConvolution, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnConvTbcBackwardGetWorkspaceSize(
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
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnConvTbcBackward", [&] {
    return Planning(kConvTbcBackward, workspaceSize, executor, call_site)
        .in("self", self)
        .in("input", input)
        .in("weight", weight)
        .in("bias", bias)
        .integer(pad)
        .integer(cubeMathType)
        .out("gradInput", gradInput)
        .out("gradWeight", gradWeight)
        .out("gradBias", gradBias)
        .plan();
  });
}

aclnnStatus aclnnConvTbcBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnConvTbcBackward", [&] {
    return run_operator(kConvTbcBackward, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnConvTbcGetWorkspaceSize(
    const aclTensor* self,
    const aclTensor* weight,
    const aclTensor* bias,
    int64_t pad,
    aclTensor* output,
    int8_t cubeMathType,
    uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnConvTbc", [&] {
    return Planning(kConvTbc, workspaceSize, executor, call_site)
        .in("self", self)
        .in("weight", weight)
        .in("bias", bias)
        .integer(pad)
        .out("output", output)
        .integer(cubeMathType)
        .plan();
  });
}

aclnnStatus aclnnConvTbc(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnConvTbc", [&] {
    return run_operator(kConvTbc, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnLstmBackwardGetWorkspaceSize(
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
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnLstmBackward", [&] {
    return Planning(kLstmBackward, workspaceSize, executor, call_site)
        .in("input", input)
        .in("hx", hx)
        .in("params", params)
        .in("dy", dy)
        .in("dh", dh)
        .in("dc", dc)
        .in("i", i)
        .in("g", g)
        .in("f", f)
        .in("o", o)
        .in("h", h)
        .in("c", c)
        .in("tanhc", tanhc)
        .in("batchSizesOptional", batchSizesOptional)
        .flag(hasBias)
        .integer(numLayers)
        .real(dropout)
        .flag(train)
        .flag(bidirectional)
        .flag(batchFirst)
        .flags("outputMask", outputMask)
        .out("dxOut", dxOut)
        .out("dhPrevOut", dhPrevOut)
        .out("dcPrevOut", dcPrevOut)
        .out("dparamsOut", dparamsOut)
        .plan();
  });
}

aclnnStatus aclnnLstmBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnLstmBackward", [&] {
    return run_operator(kLstmBackward, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnLSTMGetWorkspaceSize(
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
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnLSTM", [&] {
    return Planning(kLSTM, workspaceSize, executor, call_site)
        .in("input", input)
        .in("params", params)
        .in("hx", hx)
        .in("batchSizes", batchSizes)
        .flag(hasBias)
        .integer(numLayers)
        .real(dropout)
        .flag(train)
        .flag(bidirectional)
        .flag(batchFirst)
        .out("output", output)
        .out("hy", hy)
        .out("cy", cy)
        .out("iOut", iOut)
        .out("jOut", jOut)
        .out("fOut", fOut)
        .out("oOut", oOut)
        .out("hOut", hOut)
        .out("cOut", cOut)
        .out("tanhCOut", tanhCOut)
        .plan();
  });
}

aclnnStatus aclnnLSTM(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnLSTM", [&] {
    return run_operator(kLSTM, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnThnnFusedLstmCellBackwardGetWorkspaceSize(
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
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnThnnFusedLstmCellBackward", [&] {
    return Planning(kThnnFusedLstmCellBackward, workspaceSize, executor, call_site)
        .in("gradHyOptional", gradHyOptional)
        .in("gradCOptional", gradCOptional)
        .in("cx", cx)
        .in("cy", cy)
        .in("storage", storage)
        .flag(hasBias)
        .out("gradGatesOut", gradGatesOut)
        .out("gradCxOut", gradCxOut)
        .out("gradBiasOut", gradBiasOut)
        .plan();
  });
}

aclnnStatus aclnnThnnFusedLstmCellBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnThnnFusedLstmCellBackward", [&] {
    return run_operator(kThnnFusedLstmCellBackward, workspace, workspaceSize, executor, stream);
  });
}

aclnnStatus aclnnThnnFusedLstmCellGetWorkspaceSize(
    const aclTensor* inputGates,
    const aclTensor* hiddenGates,
    const aclTensor* cx,
    const aclTensor* inputBiasOptional,
    const aclTensor* hiddenBiasOptional,
    aclTensor* hyOut,
    aclTensor* cyOut,
    aclTensor* storageOut,
    uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclnnThnnFusedLstmCell", [&] {
    return Planning(kThnnFusedLstmCell, workspaceSize, executor, call_site)
        .in("inputGates", inputGates)
        .in("hiddenGates", hiddenGates)
        .in("cx", cx)
        .in("inputBiasOptional", inputBiasOptional)
        .in("hiddenBiasOptional", hiddenBiasOptional)
        .out("hyOut", hyOut)
        .out("cyOut", cyOut)
        .out("storageOut", storageOut)
        .plan();
  });
}

aclnnStatus aclnnThnnFusedLstmCell(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return guarded("aclnnThnnFusedLstmCell", [&] {
    return run_operator(kThnnFusedLstmCell, workspace, workspaceSize, executor, stream);
  });
}

}  // extern "C"
