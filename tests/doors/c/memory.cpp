// Device and host memory: what is taken, what is refused, with which codes.
#include "suite.h"

int main() {
  OK(aclInit(nullptr));
  EXPECT_CODE(100002, aclInit(nullptr));
  EXPECT_CODE(100000, aclInit("/no/such/file.json"));
  OK(aclrtSetDevice(0));

  void* memory = nullptr;
  EXPECT_CODE(100000, aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(100000, aclrtMalloc(nullptr, 16, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(207001, aclrtMalloc(&memory, ~size_t(0), ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT(said("aclrtMalloc: the system has no 18446744073709551615 bytes left."));
  for (size_t size : {1, 63, 64, 65, 4096}) {
    OK(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_NORMAL_ONLY));
    EXPECT(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
    std::memset(memory, 1, size);
    OK(aclrtFree(memory));
  }
  OK(aclrtMallocAlign32(&memory, 32, ACL_MEM_MALLOC_HUGE_ONLY));
  EXPECT_CODE(100000, aclrtFreeHost(memory));  // not host memory
  OK(aclrtFree(memory));
  EXPECT_CODE(100000, aclrtFree(memory));  // twice
  EXPECT_CODE(100000, aclrtFree(nullptr));
  int on_the_stack = 0;
  EXPECT_CODE(100000, aclrtFree(&on_the_stack));
  EXPECT(said("is no live allocation of this kind"));
  EXPECT_CODE(100000, aclrtFreeHost(nullptr));
  EXPECT_CODE(100000, aclrtMallocHost(nullptr, 8));
  EXPECT_CODE(100000, aclrtMallocHost(&memory, 0));

  void* host = nullptr;
  OK(aclrtMallocHost(&host, 8));
  OK(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMemset(host, 8, 7, 8));
  OK(aclrtMemcpy(memory, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemset(host, 8, 0, 8));
  OK(aclrtMemcpy(host, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT(static_cast<char*>(host)[7] == 7);
  OK(aclrtMemcpy(memory, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107000, aclrtMemcpy(memory, 4, host, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT(said("count is 8 but destMax is 4"));
  EXPECT_CODE(100000, aclrtMemcpy(nullptr, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(100000, aclrtMemcpy(memory, 8, nullptr, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107000, aclrtMemcpy(memory, 8, host, 8, static_cast<aclrtMemcpyKind>(9)));
  EXPECT_CODE(107000, aclrtMemset(memory, 4, 0, 8));
  EXPECT_CODE(100000, aclrtMemset(nullptr, 8, 0, 8));

  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtMemsetAsync(memory, 8, 5, 8, stream));
  OK(aclrtMemcpyAsync(host, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(static_cast<char*>(host)[0] == 5);
  EXPECT_CODE(107000, aclrtMemcpyAsync(memory, 4, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  OK(aclrtDestroyStream(stream));
  EXPECT_CODE(100000, aclrtMemsetAsync(memory, 8, 5, 8, stream));

  size_t free_bytes = 0, total = 0;
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  EXPECT(free_bytes > 0 && free_bytes <= total);
  EXPECT_CODE(100000, aclrtGetMemInfo(ACL_DDR_MEM, nullptr, &total));

  OK(aclFinalize());
  EXPECT_CODE(100037, aclFinalize());
  OK(aclrtFree(memory));  // a deleter may come after the end
  OK(aclrtFreeHost(host));
  std::puts("fine");
}
