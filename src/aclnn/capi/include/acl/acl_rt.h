// The runtime: devices, contexts, streams, events, memory. Two devices are visible; both are this computer.
#ifndef ACLNN_CPU_ACL_ACL_RT_H
#define ACLNN_CPU_ACL_ACL_RT_H

#include "acl/acl_base.h"

typedef enum aclrtRunMode ACLNN_CPU_INT { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

typedef enum aclrtStreamStatus ACLNN_CPU_INT {
  ACL_STREAM_STATUS_COMPLETE = 0,
  ACL_STREAM_STATUS_NOT_READY = 1
} aclrtStreamStatus;

typedef enum aclrtEventRecordedStatus ACLNN_CPU_INT {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum aclrtEventStatus ACLNN_CPU_INT {
  ACL_EVENT_STATUS_COMPLETE = 0,
  ACL_EVENT_STATUS_NOT_READY = 1,
  ACL_EVENT_STATUS_RESERVED = 2
} aclrtEventStatus;

typedef enum aclrtEventWaitStatus ACLNN_CPU_INT {
  ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
  ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
  ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF
} aclrtEventWaitStatus;

// Flags of events and streams. All are taken; none changes what an event or a stream does here.
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U

typedef enum aclrtMemcpyKind ACLNN_CPU_INT {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy ACLNN_CPU_INT {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5
} aclrtMemMallocPolicy;

typedef enum aclrtMemAttr ACLNN_CPU_INT { ACL_DDR_MEM = 0, ACL_HBM_MEM = 1 } aclrtMemAttr;

typedef enum aclrtCallbackBlockType ACLNN_CPU_INT { ACL_CALLBACK_NO_BLOCK = 0, ACL_CALLBACK_BLOCK = 1 } aclrtCallbackBlockType;

typedef void (*aclrtCallback)(void* userData);
typedef void (*aclrtHostFunc)(void* userData);

#ifdef __cplusplus
extern "C" {
#endif

// Devices and contexts. The current device and context belong to the calling thread.
ACLNN_CPU_API aclError aclrtSetDevice(int32_t deviceId);
ACLNN_CPU_API aclError aclrtResetDevice(int32_t deviceId);
ACLNN_CPU_API aclError aclrtResetDeviceForce(int32_t deviceId);
ACLNN_CPU_API aclError aclrtGetDevice(int32_t* deviceId);
ACLNN_CPU_API aclError aclrtGetDeviceCount(uint32_t* count);
ACLNN_CPU_API const char* aclrtGetSocName(void);
ACLNN_CPU_API aclError aclrtGetRunMode(aclrtRunMode* runMode);
ACLNN_CPU_API aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion);
ACLNN_CPU_API aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);
ACLNN_CPU_API aclError aclrtDestroyContext(aclrtContext context);
ACLNN_CPU_API aclError aclrtSetCurrentContext(aclrtContext context);
ACLNN_CPU_API aclError aclrtGetCurrentContext(aclrtContext* context);

// Streams. Work on one stream runs in order, two streams run side by side; null is the default stream of the current
// device. An error during the work is answered, once and with its message, by the call that synchronizes.
ACLNN_CPU_API aclError aclrtCreateStream(aclrtStream* stream);
ACLNN_CPU_API aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag);
ACLNN_CPU_API aclError aclrtDestroyStream(aclrtStream stream);
ACLNN_CPU_API aclError aclrtDestroyStreamForce(aclrtStream stream);
ACLNN_CPU_API aclError aclrtSynchronizeStream(aclrtStream stream);
ACLNN_CPU_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeoutMs);
ACLNN_CPU_API aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);
ACLNN_CPU_API aclError aclrtSynchronizeDevice(void);
ACLNN_CPU_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

// Events.
ACLNN_CPU_API aclError aclrtCreateEvent(aclrtEvent* event);
ACLNN_CPU_API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
ACLNN_CPU_API aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
ACLNN_CPU_API aclError aclrtDestroyEvent(aclrtEvent event);
ACLNN_CPU_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
ACLNN_CPU_API aclError aclrtSynchronizeEvent(aclrtEvent event);
ACLNN_CPU_API aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);
ACLNN_CPU_API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status);
ACLNN_CPU_API aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent start, aclrtEvent end);

// Memory. Device memory is aligned to 64 bytes and holds whatever was there. Freed memory that queued work still needs
// lives on until that work is done.
ACLNN_CPU_API aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
ACLNN_CPU_API aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
ACLNN_CPU_API aclError aclrtFree(void* devPtr);
ACLNN_CPU_API aclError aclrtMallocHost(void** hostPtr, size_t size);
ACLNN_CPU_API aclError aclrtFreeHost(void* hostPtr);
ACLNN_CPU_API aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind);
ACLNN_CPU_API aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                        aclrtMemcpyKind kind, aclrtStream stream);
ACLNN_CPU_API aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count);
ACLNN_CPU_API aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                                        aclrtStream stream);
ACLNN_CPU_API aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);

// Host callbacks: a thread subscribes to a stream and runs, inside aclrtProcessReport, what the stream launches.
ACLNN_CPU_API aclError aclrtLaunchCallback(aclrtCallback function, void* userData, aclrtCallbackBlockType blockType,
                                           aclrtStream stream);
ACLNN_CPU_API aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
ACLNN_CPU_API aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);
ACLNN_CPU_API aclError aclrtProcessReport(int32_t timeoutMs);

// Host functions: the stream's own thread runs one, in its place among the work. It may start work, but not wait for
// streams, events or devices: its own stream waits for it.
ACLNN_CPU_API aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void* userData);

#ifdef __cplusplus
}
#endif

#endif
