// The objects operators take: tensors, scalars, arrays and lists of them, and executors.
//
// Every object is a handle. A handle that was destroyed, or never was one, is answered with an error or tolerated
// (destroying twice, destroying null), never followed.
#ifndef ACLNN_CPU_ACLNN_ACL_META_H
#define ACLNN_CPU_ACLNN_ACL_META_H

#include "acl/acl_base.h"

typedef int32_t aclnnStatus;

typedef struct aclTensor aclTensor;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalar aclScalar;
typedef struct aclScalarList aclScalarList;
typedef struct aclIntArray aclIntArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclOpExecutor aclOpExecutor;

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_CPU_API aclnnStatus aclnnInit(const char* configPath);
ACLNN_CPU_API aclnnStatus aclnnFinalize(void);

// Tensors: a view (dims, strides and offset count elements; null strides mean contiguous) on storage of the given dims.
// data is the address the storage begins at and may be null as long as no operator needs it. Null storage dims leave the
// size of the storage open.
ACLNN_CPU_API aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                         const int64_t* stride, int64_t offset, aclFormat format,
                                         const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData);
ACLNN_CPU_API aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                                        aclDataType dataType, const int64_t* stride, int64_t offset,
                                        aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                                        void* tensorData);
ACLNN_CPU_API aclnnStatus aclDestroyTensor(const aclTensor* tensor);

// Arrays handed out here are released by the caller with delete[].
ACLNN_CPU_API aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum);
ACLNN_CPU_API aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* stridesNum);
ACLNN_CPU_API aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum);
ACLNN_CPU_API aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);
ACLNN_CPU_API aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);
ACLNN_CPU_API aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType);
ACLNN_CPU_API aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** address);
ACLNN_CPU_API aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* address);

// Lists. Destroying one destroys those of its members that still are what they were when it was made.
ACLNN_CPU_API aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size);
ACLNN_CPU_API aclnnStatus aclDestroyTensorList(const aclTensorList* list);
ACLNN_CPU_API aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size);
ACLNN_CPU_API aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size);
ACLNN_CPU_API aclnnStatus aclDestroyScalarList(const aclScalarList* list);
ACLNN_CPU_API aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size);

// Scalars and arrays. They copy what they are given.
ACLNN_CPU_API aclScalar* aclCreateScalar(void* value, aclDataType dataType);
ACLNN_CPU_API aclnnStatus aclDestroyScalar(const aclScalar* scalar);
ACLNN_CPU_API aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);
ACLNN_CPU_API aclnnStatus aclDestroyIntArray(const aclIntArray* array);
ACLNN_CPU_API aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size);
ACLNN_CPU_API aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size);
ACLNN_CPU_API aclnnStatus aclDestroyBoolArray(const aclBoolArray* array);
ACLNN_CPU_API aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size);
ACLNN_CPU_API aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size);
ACLNN_CPU_API aclnnStatus aclDestroyFloatArray(const aclFloatArray* array);
ACLNN_CPU_API aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size);

// Executors. A repeatable one runs any number of times, until it is destroyed; in between its tensors may be given other
// memory. The index counts the tensors and lists among the inputs, among the outputs, or among all arguments.
ACLNN_CPU_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
ACLNN_CPU_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);
ACLNN_CPU_API aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                                void* address);
ACLNN_CPU_API aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                                 void* address);
ACLNN_CPU_API aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                           void* address);
ACLNN_CPU_API aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t listIndex,
                                                       const size_t elementIndex, aclTensorList* tensors,
                                                       void* address);
ACLNN_CPU_API aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t listIndex,
                                                        const size_t elementIndex, aclTensorList* tensors,
                                                        void* address);
ACLNN_CPU_API aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t listIndex, const size_t elementIndex,
                                                  aclTensorList* tensors, void* address);

#ifdef __cplusplus
}
#endif

#endif
