// Functions a program may name that have no meaning here. Each links, answers ACL_ERROR_RT_FEATURE_NOT_SUPPORT and
// leaves its name in aclGetRecentErrMsg.
#ifndef ACLNN_CPU_ACL_ACL_UNSUPPORTED_H
#define ACLNN_CPU_ACL_ACL_UNSUPPORTED_H

#include "acl/acl_base.h"

#define ACLNN_CPU_EACH_UNSUPPORTED(DO) \
  DO(aclDumpSetup)                     \
  DO(aclmdlExecute)                    \
  DO(aclmdlExecuteAsync)               \
  DO(aclmdlFinalizeDump)               \
  DO(aclmdlInitDump)                   \
  DO(aclmdlLoadFromFile)               \
  DO(aclmdlLoadFromMem)                \
  DO(aclmdlSetDump)                    \
  DO(aclmdlUnload)                     \
  DO(aclopCompile)                     \
  DO(aclopCompileAndExecute)           \
  DO(aclopExecuteV2)                   \
  DO(aclopSetModelDir)                 \
  DO(aclprofFinalize)                  \
  DO(aclprofInit)                      \
  DO(aclprofStart)                     \
  DO(aclprofStop)                      \
  DO(aclrtAllocatorRegister)           \
  DO(aclrtCreateEventExWithFlag)       \
  DO(aclrtCtxGetSysParamOpt)           \
  DO(aclrtCtxSetSysParamOpt)           \
  DO(aclrtDeviceCanAccessPeer)         \
  DO(aclrtDeviceDisablePeerAccess)     \
  DO(aclrtDeviceEnablePeerAccess)      \
  DO(aclrtGetDeviceUtilizationRate)    \
  DO(aclrtMallocCached)                \
  DO(aclrtMemFlush)                    \
  DO(aclrtMemInvalidate)               \
  DO(aclrtMemcpy2d)                    \
  DO(aclrtMemcpy2dAsync)               \
  DO(aclrtResetEvent)                  \
  DO(aclrtSetExceptionInfoCallback)    \
  DO(aclrtSetGroup)                    \
  DO(aclrtSetOpExecuteTimeOut)         \
  DO(aclrtSetOpWaitTimeout)            \
  DO(aclrtSetTsDevice)                 \
  DO(aclrtStreamAbort)

#ifdef __cplusplus
extern "C" {
#define ACLNN_CPU_DECLARE_UNSUPPORTED(name) ACLNN_CPU_API aclError name(...);
ACLNN_CPU_EACH_UNSUPPORTED(ACLNN_CPU_DECLARE_UNSUPPORTED)
#undef ACLNN_CPU_DECLARE_UNSUPPORTED
}
#endif

#endif
