#include "memory.h"

#include <sys/sysinfo.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "acl/acl.h"
#include "check.h"
#include "devices.h"
#include "errors.h"
#include "lifecycle.h"
#include "stream.h"

namespace aclnn_cpu {
namespace {

constexpr size_t kAlignment = 64;

std::mutex lock_of_the_book;

// By start address.
std::map<const char*, Block>& book() {
  static auto* made = new std::map<const char*, Block>;
  return *made;
}

int allocate(const char* function, void** result, size_t size, Place place, void* call_site) {
  return guarded(function, [&] {
    if (result == nullptr) return fail_null(function, "the place for the address");
    if (size == 0) return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": size is 0; it must be at least 1.");
    if (place == Place::device) device_in_use(function);
    const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = rounded < size ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                  std::string(function) + ": the system has no " + text_of(size) + " bytes left.");
    }
    char* start = static_cast<char*>(memory);
    std::unique_ptr<void, decltype(&std::free)> until_it_is_booked(memory, std::free);
    std::lock_guard<std::mutex> hold(memory_lock());
    book()[start] = {start, size, place, call_site};
    *result = until_it_is_booked.release();
    return 0;
  });
}

struct Retired {
  ~Retired() { std::free(memory); }
  void* memory = nullptr;
};

// Frees at once when no stream has work; else when each of those that have some has come to this point.
void retire(void* memory) {
  if (work_in_flight() == 0) {
    std::free(memory);
    return;
  }
  const auto last_user_frees = std::make_shared<Retired>();
  for (const auto& stream : working_streams()) stream->follow([last_user_frees] { return Outcome{}; });
  last_user_frees->memory = memory;  // only now: if anything failed on the way, nothing is freed under anyone
}

std::map<const char*, Block>::node_type take_out(const void* memory, Place place) {
  std::lock_guard<std::mutex> hold(memory_lock());
  const auto found = book().find(static_cast<const char*>(memory));
  if (found == book().end() || found->second.place != place) return {};
  return book().extract(found);
}

int release(const char* function, void* memory, Place place) {
  return guarded(function, [&] {
    if (memory == nullptr) return fail_null(function, "the address");
    auto entry = take_out(memory, place);
    if (entry.empty()) {
      return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": " + text_of(memory) +
                                               " is no live allocation of this kind; it was freed or never made.");
    }
    try {
      check_free(function, entry.mapped());
      retire(memory);
    } catch (const std::exception&) {
      std::lock_guard<std::mutex> hold(memory_lock());
      book().insert(std::move(entry));  // as it was: it can be freed again
      throw;
    }
    return 0;
  });
}

int check_copy(const char* function, const void* dst, size_t most, const void* src, size_t count, int kind) {
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEFAULT) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                std::string(function) + ": kind is " + std::to_string(kind) + "; it must be 0..4.");
  }
  if (count > most) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": count is " + text_of(count) +
                                                " but destMax is " + text_of(most) + "; it must not be larger.");
  }
  if (count == 0) return 0;
  if (dst == nullptr || src == nullptr) return fail_null(function, dst == nullptr ? "dst" : "src");
  if (checking()) {
    const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    if (to_device) report_host_pointer(function, "dst", dst);
    if (from_device) report_host_pointer(function, "src", src);
  }
  return 0;
}

int check_set(const char* function, const void* memory, size_t most, size_t count) {
  if (count > most) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": count is " + text_of(count) +
                                                " but maxCount is " + text_of(most) + "; it must not be larger.");
  }
  return count > 0 && memory == nullptr ? fail_null(function, "devPtr") : 0;
}

// Puts plain work on a stream; the public function's result.
int enqueue(const char* function, aclrtStream handle, Job job) {
  const auto stream = find_stream(handle, function, ACL_ERROR_INVALID_PARAM);
  return stream ? fail(stream->submit(std::move(job), By::anyone)) : ACL_ERROR_INVALID_PARAM;
}

}  // namespace

std::mutex& memory_lock() { return lock_of_the_book; }

bool find_block(const void* address, Block* block) {
  const char* place = static_cast<const char*>(address);
  std::lock_guard<std::mutex> hold(memory_lock());
  auto after = book().upper_bound(place);
  if (after == book().begin()) return false;
  *block = std::prev(after)->second;
  return place < block->start + block->size;
}

std::vector<Block> live_blocks() {
  std::lock_guard<std::mutex> hold(memory_lock());
  std::vector<Block> found;
  for (const auto& entry : book()) found.push_back(entry.second);
  return found;
}

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" {

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate("aclrtMalloc", devPtr, size, Place::device, __builtin_return_address(0));
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return allocate("aclrtMallocAlign32", devPtr, size, Place::device, __builtin_return_address(0));
}

aclError aclrtFree(void* devPtr) { return release("aclrtFree", devPtr, Place::device); }

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return allocate("aclrtMallocHost", hostPtr, size, Place::host, __builtin_return_address(0));
}

aclError aclrtFreeHost(void* hostPtr) { return release("aclrtFreeHost", hostPtr, Place::host); }

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return guarded("aclrtMemcpy", [&] {
    const int code = check_copy("aclrtMemcpy", dst, destMax, src, count, kind);
    if (code == 0 && count > 0) std::memmove(dst, src, count);
    return code;
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  return guarded("aclrtMemcpyAsync", [&] {
    const int code = check_copy("aclrtMemcpyAsync", dst, destMax, src, count, kind);
    if (code != 0) return code;
    return enqueue("aclrtMemcpyAsync", stream, [=] {
      if (count > 0) std::memmove(dst, src, count);
      return Outcome{};
    });
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return guarded("aclrtMemset", [&] {
    const int code = check_set("aclrtMemset", devPtr, maxCount, count);
    if (code == 0 && count > 0) std::memset(devPtr, value, count);
    return code;
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return guarded("aclrtMemsetAsync", [&] {
    const int code = check_set("aclrtMemsetAsync", devPtr, maxCount, count);
    if (code != 0) return code;
    return enqueue("aclrtMemsetAsync", stream, [=] {
      if (count > 0) std::memset(devPtr, value, count);
      return Outcome{};
    });
  });
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  return guarded("aclrtGetMemInfo", [&] {
    if (free == nullptr || total == nullptr) return fail_null("aclrtGetMemInfo", free == nullptr ? "free" : "total");
    struct sysinfo info;
    if (sysinfo(&info) != 0) return fail(ACL_ERROR_FAILURE, "aclrtGetMemInfo: the system does not say.");
    *free = static_cast<size_t>(info.freeram) * info.mem_unit;
    *total = static_cast<size_t>(info.totalram) * info.mem_unit;
    return 0;
  });
}

}  // extern "C"
