#include "devices.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "acl/acl.h"
#include "callbacks.h"
#include "check.h"
#include "dtype_tables.h"
#include "recorded.h"

namespace aclnn_cpu {
namespace {

thread_local int thread_device = -1;
thread_local void* thread_context = nullptr;

enum class Runtime { never, initialized, finalized };
std::atomic<Runtime> runtime{Runtime::never};

bool exists(int device) { return device >= 0 && device < kDevices; }

int no_such_device(const char* function, int device) {
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, std::string(function) + ": deviceId is " + std::to_string(device) +
                                                 "; it must be 0.." + std::to_string(kDevices - 1) + ".");
}

int no_such_context(const char* function, const void* context) {
  return fail_not_live(function, "context", "aclrtContext", context, ACL_ERROR_INVALID_PARAM);
}

// The contexts that go with the devices for whoever makes none.
void* default_context(int device) {
  static void* const made[kDevices] = {contexts().insert({0, true}, nullptr), contexts().insert({1, true}, nullptr)};
  return made[device];
}

int reset_device(const char* function, int device) {
  return guarded(function, [&] {
    if (!exists(device)) return no_such_device(function, device);
    if (const int refused = refuse_to_wait(function)) return refused;
    Outcome first;
    for (const auto& stream : working_streams(device)) {
      Outcome outcome;
      stream->synchronize(kForEver, &outcome);
      if (first.ok()) first = outcome;
    }
    if (thread_device == device) {
      thread_device = -1;
      thread_context = nullptr;
    }
    return fail(first);
  });
}

// The version, and its parts as text.
void write_version(aclCANNPackageVersion* version) {
  *version = {};
  const auto write = [](char* place, size_t room, int number) { std::snprintf(place, room, "%d", number); };
  write(version->majorVersion, sizeof version->majorVersion, ACLNN_CPU_VERSION_MAJOR);
  write(version->minorVersion, sizeof version->minorVersion, ACLNN_CPU_VERSION_MINOR);
  write(version->releaseVersion, sizeof version->releaseVersion, ACLNN_CPU_VERSION_PATCH);
  write(version->patchVersion, sizeof version->patchVersion, 0);
  std::snprintf(version->version, sizeof version->version, "%d.%d.%d", ACLNN_CPU_VERSION_MAJOR,
                ACLNN_CPU_VERSION_MINOR, ACLNN_CPU_VERSION_PATCH);
}

std::shared_ptr<Stream>* default_streams() {
  static auto* made = new std::shared_ptr<Stream>[kDevices];
  return made;
}

}  // namespace

int current_device() { return thread_device; }

int device_in_use(const char* function) {
  if (thread_device >= 0) return thread_device;
  if (checking()) {
    say(std::string(function) + ": this thread has not called aclrtSetDevice; device 0 is used, hardware would refuse.");
  }
  return 0;
}

std::shared_ptr<Stream> default_stream() {
  const int device = thread_device < 0 ? 0 : thread_device;
  std::lock_guard<std::mutex> hold(stream_registry_lock());
  auto& stream = default_streams()[device];
  if (!stream || stream->is_orphan()) stream = std::make_shared<Stream>(device);
  return stream;
}

void make_devices() {
  default_context(0);
  default_streams();
}

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" {

aclError aclInit(const char* configPath) {
  return guarded("aclInit", [&] {
    if (configPath != nullptr && *configPath != '\0' && access(configPath, R_OK) != 0) {
      return fail(ACL_ERROR_INVALID_PARAM, std::string("aclInit: configPath is ") + configPath +
                                               ", which cannot be read; it must be a file or null.");
    }
    if (runtime.exchange(Runtime::initialized) == Runtime::initialized) {
      return fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: it was called before; one call is enough.");
    }
    return 0;
  });
}

aclError aclFinalize() {
  return guarded("aclFinalize", [&] {
    Runtime before = Runtime::initialized;
    if (runtime.compare_exchange_strong(before, Runtime::finalized)) {
      report_leaks();
      return 0;
    }
    if (before == Runtime::finalized) return fail(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: it was called before.");
    return fail(ACL_ERROR_UNINITIALIZE, "aclFinalize: aclInit was not called.");
  });
}

aclnnStatus aclnnInit(const char*) { return 0; }

aclnnStatus aclnnFinalize() { return 0; }

aclError aclrtSetDevice(int32_t deviceId) {
  return guarded("aclrtSetDevice", [&] {
    if (!exists(deviceId)) return no_such_device("aclrtSetDevice", deviceId);
    thread_device = deviceId;
    thread_context = default_context(deviceId);
    return 0;
  });
}

aclError aclrtResetDevice(int32_t deviceId) { return reset_device("aclrtResetDevice", deviceId); }

aclError aclrtResetDeviceForce(int32_t deviceId) { return reset_device("aclrtResetDeviceForce", deviceId); }

aclError aclrtGetDevice(int32_t* deviceId) {
  return guarded("aclrtGetDevice", [&] {
    if (deviceId == nullptr) return fail_null("aclrtGetDevice", "deviceId");
    if (thread_device < 0) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetDevice: this thread has no device; call aclrtSetDevice first.");
    }
    *deviceId = thread_device;
    return 0;
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return guarded("aclrtGetDeviceCount", [&] {
    if (count == nullptr) return fail_null("aclrtGetDeviceCount", "count");
    *count = kDevices;
    return 0;
  });
}

const char* aclrtGetSocName() {
  const char* product = std::getenv("ACLNN_PRODUCT");
  return soc_name_of(product == nullptr ? "" : product);
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return guarded("aclrtGetRunMode", [&] {
    if (runMode == nullptr) return fail_null("aclrtGetRunMode", "runMode");
    *runMode = ACL_HOST;
    return 0;
  });
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return guarded("aclrtGetVersion", [&] {
    if (majorVersion == nullptr || minorVersion == nullptr || patchVersion == nullptr) {
      return fail_null("aclrtGetVersion", "one of the three versions");
    }
    *majorVersion = ACLNN_CPU_VERSION_MAJOR;
    *minorVersion = ACLNN_CPU_VERSION_MINOR;
    *patchVersion = ACLNN_CPU_VERSION_PATCH;
    return 0;
  });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  return guarded("aclsysGetCANNVersion", [&] {
    if (version == nullptr) return fail_null("aclsysGetCANNVersion", "version");
    if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
      return fail(ACL_ERROR_INVALID_PARAM, "aclsysGetCANNVersion: name is " + std::to_string(name) + "; it must be 0..7.");
    }
    write_version(version);
    return 0;
  });
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  void* call_site = __builtin_return_address(0);
  return guarded("aclrtCreateContext", [&] {
    if (context == nullptr) return fail_null("aclrtCreateContext", "context");
    if (!exists(deviceId)) return no_such_device("aclrtCreateContext", deviceId);
    *context = contexts().insert({deviceId, false}, call_site);
    thread_device = deviceId;
    thread_context = *context;
    return 0;
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return guarded("aclrtDestroyContext", [&] {
    if (context == nullptr) return fail_null("aclrtDestroyContext", "context");
    Context taken;
    contexts().with(context, [&](const Context& found) { taken = found; });
    if (taken.is_default) {
      return fail(ACL_ERROR_INVALID_PARAM, "aclrtDestroyContext: this context is that of device " +
                                               std::to_string(taken.device) +
                                               " itself; only one of aclrtCreateContext can be destroyed.");
    }
    if (!contexts().take(context, &taken) && contexts().standing(context) == Standing::foreign) {
      return no_such_context("aclrtDestroyContext", context);
    }
    if (thread_context == context) thread_context = nullptr;
    return 0;
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return guarded("aclrtSetCurrentContext", [&] {
    if (context == nullptr) return fail_null("aclrtSetCurrentContext", "context");
    Context found;
    if (!contexts().with(context, [&](const Context& one) { found = one; })) {
      return no_such_context("aclrtSetCurrentContext", context);
    }
    thread_device = found.device;
    thread_context = context;
    return 0;
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return guarded("aclrtGetCurrentContext", [&] {
    if (context == nullptr) return fail_null("aclrtGetCurrentContext", "context");
    if (thread_context == nullptr) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL,
                  "aclrtGetCurrentContext: this thread has no context; call aclrtSetDevice first.");
    }
    if (contexts().standing(thread_context) != Standing::live) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL, "aclrtGetCurrentContext: the context of this thread was destroyed by another "
                                             "one; call aclrtSetCurrentContext or aclrtSetDevice.");
    }
    *context = thread_context;
    return 0;
  });
}

}  // extern "C"
