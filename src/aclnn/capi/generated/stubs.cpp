// Written by `make gen` from the contracts; do not edit.
#include "acl/acl.h"
#include "errors.h"

#define STUB(name, why) \
  ACLNN_CPU_API aclError name(...) { return aclnn_cpu::fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, #name ": " why); }

extern "C" {

STUB(aclDumpSetup, "there is nothing to dump; the memory of the device is ordinary memory.")
STUB(aclmdlExecute, "offline models are not part of this library.")
STUB(aclmdlExecuteAsync, "offline models are not part of this library.")
STUB(aclmdlFinalizeDump, "there is nothing to dump; the memory of the device is ordinary memory.")
STUB(aclmdlInitDump, "there is nothing to dump; the memory of the device is ordinary memory.")
STUB(aclmdlLoadFromFile, "offline models are not part of this library.")
STUB(aclmdlLoadFromMem, "offline models are not part of this library.")
STUB(aclmdlRICaptureBegin, "work of a stream is not captured into graphs here.")
STUB(aclmdlRICaptureEnd, "work of a stream is not captured into graphs here.")
STUB(aclmdlRIDestroy, "work of a stream is not captured into graphs here.")
STUB(aclmdlRIExecuteAsync, "work of a stream is not captured into graphs here.")
STUB(aclmdlSetDump, "there is nothing to dump; the memory of the device is ordinary memory.")
STUB(aclmdlUnload, "offline models are not part of this library.")
STUB(aclopCompile, "operators are called through their own two functions here.")
STUB(aclopCompileAndExecute, "operators are called through their own two functions here.")
STUB(aclopExecuteV2, "operators are called through their own two functions here.")
STUB(aclopSetModelDir, "operators are called through their own two functions here.")
STUB(aclprofFinalize, "there is no profiler; ACLNN_VERBOSE=1 prints one line per run.")
STUB(aclprofInit, "there is no profiler; ACLNN_VERBOSE=1 prints one line per run.")
STUB(aclprofStart, "there is no profiler; ACLNN_VERBOSE=1 prints one line per run.")
STUB(aclprofStop, "there is no profiler; ACLNN_VERBOSE=1 prints one line per run.")
STUB(aclrtAllocatorRegister, "there is no such thing on a CPU.")
STUB(aclrtCtxGetSysParamOpt, "there is no such thing on a CPU.")
STUB(aclrtCtxSetSysParamOpt, "there is no such thing on a CPU.")
STUB(aclrtDeviceCanAccessPeer, "there is no such thing on a CPU.")
STUB(aclrtDeviceDisablePeerAccess, "there is no such thing on a CPU.")
STUB(aclrtDeviceEnablePeerAccess, "there is no such thing on a CPU.")
STUB(aclrtGetDeviceUtilizationRate, "there is no such thing on a CPU.")
STUB(aclrtMallocCached, "it is not part of this library.")
STUB(aclrtMemFlush, "it is not part of this library.")
STUB(aclrtMemInvalidate, "it is not part of this library.")
STUB(aclrtMemcpy2d, "it is not part of this library.")
STUB(aclrtMemcpy2dAsync, "it is not part of this library.")
STUB(aclrtResetEvent, "it is not part of this library.")
STUB(aclrtSetExceptionInfoCallback, "it is not part of this library.")
STUB(aclrtSetGroup, "there is no such thing on a CPU.")
STUB(aclrtSetOpExecuteTimeOut, "it is not part of this library.")
STUB(aclrtSetOpWaitTimeout, "it is not part of this library.")
STUB(aclrtSetTsDevice, "there is no such thing on a CPU.")
STUB(aclrtStreamAbort, "it is not part of this library.")

}  // extern "C"
