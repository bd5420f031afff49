// Written by `make gen` from the contracts; do not edit.

// Functions that have no meaning here. Each links, answers ACL_ERROR_RT_FEATURE_NOT_SUPPORT and says why in
// aclGetRecentErrMsg.
#ifndef ACLNN_CPU_ACL_ACL_UNSUPPORTED_H
#define ACLNN_CPU_ACL_ACL_UNSUPPORTED_H

#include "acl/acl_base.h"

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define ACLNN_CPU_ANY_ARGUMENTS ...
#else
#define ACLNN_CPU_ANY_ARGUMENTS
#endif

#ifdef __cplusplus
extern "C" {
#endif

ACLNN_CPU_API aclError aclDumpSetup(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlExecute(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlExecuteAsync(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlFinalizeDump(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlInitDump(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlLoadFromFile(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlLoadFromMem(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlSetDump(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclmdlUnload(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclopCompile(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclopCompileAndExecute(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclopExecuteV2(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclopSetModelDir(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclprofFinalize(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclprofInit(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclprofStart(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclprofStop(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtAllocatorRegister(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtCtxGetSysParamOpt(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtCtxSetSysParamOpt(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtDeviceCanAccessPeer(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtDeviceDisablePeerAccess(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtDeviceEnablePeerAccess(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtGetDeviceUtilizationRate(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtMallocCached(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtMemFlush(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtMemInvalidate(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtMemcpy2d(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtMemcpy2dAsync(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtResetEvent(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtSetExceptionInfoCallback(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtSetGroup(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtSetOpExecuteTimeOut(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtSetOpWaitTimeout(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtSetTsDevice(ACLNN_CPU_ANY_ARGUMENTS);
ACLNN_CPU_API aclError aclrtStreamAbort(ACLNN_CPU_ANY_ARGUMENTS);

#ifdef __cplusplus
}
#endif

#undef ACLNN_CPU_ANY_ARGUMENTS

#endif
