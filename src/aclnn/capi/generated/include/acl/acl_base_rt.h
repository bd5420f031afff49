// Written by `make gen` from the contracts; do not edit.
#ifndef ACLNN_CPU_ACL_ACL_BASE_RT_H
#define ACLNN_CPU_ACL_ACL_BASE_RT_H

// In C++ every int is a value of these enumerations, so that one that is out of range can be refused.
#ifdef __cplusplus
#define ACLNN_CPU_INT : int
#else
#define ACLNN_CPU_INT
#endif

typedef enum aclDataType ACLNN_CPU_INT {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36
} aclDataType;

typedef enum aclFormat ACLNN_CPU_INT {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NC = 35,
  ACL_FORMAT_NCL = 47
} aclFormat;

static const int ACLNN_ERR_PARAM_NULLPTR = 161001;
static const int ACLNN_ERR_PARAM_INVALID = 161002;
static const int ACLNN_ERR_RUNTIME_ERROR = 361001;
static const int ACLNN_ERR_INNER = 561000;

#endif
