// Types, return codes and small helpers that everything else is built on.
#ifndef ACLNN_CPU_ACL_ACL_BASE_H
#define ACLNN_CPU_ACL_ACL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base_rt.h"

#define ACLNN_CPU_API __attribute__((visibility("default")))

typedef int aclError;

typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

static const int ACL_SUCCESS = 0;
static const int ACL_ERROR_NONE = 0;
static const int ACL_ERROR_INVALID_PARAM = 100000;
static const int ACL_ERROR_UNINITIALIZE = 100001;
static const int ACL_ERROR_REPEAT_INITIALIZE = 100002;
static const int ACL_ERROR_REPEAT_FINALIZE = 100037;
static const int ACL_ERROR_BAD_ALLOC = 200000;
static const int ACL_ERROR_INTERNAL_ERROR = 500000;
static const int ACL_ERROR_FAILURE = 500001;
static const int ACL_ERROR_RT_PARAM_INVALID = 107000;
static const int ACL_ERROR_RT_INVALID_DEVICEID = 107001;
static const int ACL_ERROR_RT_CONTEXT_NULL = 107002;
static const int ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000;
static const int ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;

#ifdef __cplusplus
extern "C" {
#endif

// The sentences of this thread's failed calls since the last time it asked, newest first, one per line; "" if there are
// none. Reading clears them. The text stays valid until the thread asks again.
ACLNN_CPU_API const char* aclGetRecentErrMsg(void);

// Bytes of one element; 0 for a type that does not exist.
ACLNN_CPU_API size_t aclDataTypeSize(aclDataType dataType);

// IEEE half precision, rounded to nearest, ties to even.
ACLNN_CPU_API float aclFloat16ToFloat(uint16_t value);
ACLNN_CPU_API uint16_t aclFloatToFloat16(float value);

#ifdef __cplusplus
}
#endif

#endif
