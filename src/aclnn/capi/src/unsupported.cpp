#include "acl/acl.h"
#include "errors.h"

extern "C" {
#define ACLNN_CPU_DEFINE_UNSUPPORTED(name)                                                                \
  aclError name(...) {                                                                                    \
    return aclnn_cpu::fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, #name ": there is no such thing on a CPU."); \
  }
ACLNN_CPU_EACH_UNSUPPORTED(ACLNN_CPU_DEFINE_UNSUPPORTED)
#undef ACLNN_CPU_DEFINE_UNSUPPORTED
}
