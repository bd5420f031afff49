// What the test programs share: expectations that say where they failed, and a small ELU call on device memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::printf("%s:%d: %s\n   %s\n", __FILE__, __LINE__, #condition, aclGetRecentErrMsg()); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

#define EXPECT_CODE(code, call)                                                                                     \
  do {                                                                                                              \
    const long long found_ = (call);                                                                                \
    if (found_ != (code)) {                                                                                         \
      std::printf("%s:%d: %s is %lld, not %lld\n   %s\n", __FILE__, __LINE__, #call, found_, (long long)(code),     \
                  aclGetRecentErrMsg());                                                                            \
      std::exit(1);                                                                                                 \
    }                                                                                                               \
  } while (0)

#define OK(call) EXPECT_CODE(0, call)

// The newest sentence holds these words.
inline bool said(const char* words) { return std::strstr(aclGetRecentErrMsg(), words) != nullptr; }

using Tensor = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)>;
using Memory = std::unique_ptr<void, aclError (*)(void*)>;
using Scalar = std::unique_ptr<aclScalar, aclnnStatus (*)(const aclScalar*)>;

inline Memory device_memory(size_t bytes) {
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return Memory(memory, aclrtFree);
}

inline Memory device_copy(const std::vector<float>& values) {
  Memory memory = device_memory(values.size() * sizeof(float));
  const size_t bytes = values.size() * sizeof(float);
  OK(aclrtMemcpy(memory.get(), bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return memory;
}

inline std::vector<float> host_copy(const void* memory, size_t count) {
  std::vector<float> values(count);
  OK(aclrtMemcpy(values.data(), count * sizeof(float), memory, count * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
  return values;
}

inline Tensor tensor_on(void* memory, int64_t count) {
  return Tensor(aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, memory), aclDestroyTensor);
}

inline Scalar scalar_of(float value) { return Scalar(aclCreateScalar(&value, ACL_FLOAT), aclDestroyScalar); }

// The gradient of ELU given its result, alpha = scale = inputScale = 1: one call with everything it needs.
class Elu {
 public:
  explicit Elu(std::vector<float> grad, std::vector<float> result)
      : count(static_cast<int64_t>(grad.size())), grad_memory(device_copy(grad)), result_memory(device_copy(result)),
        out_memory(device_memory(grad.size() * sizeof(float))), grad(tensor_on(grad_memory.get(), count)),
        result(tensor_on(result_memory.get(), count)), out(tensor_on(out_memory.get(), count)), one(scalar_of(1)) {}

  int plan() {
    return aclnnEluBackwardGetWorkspaceSize(grad.get(), one.get(), one.get(), one.get(), true, result.get(), out.get(),
                                            &size, &executor);
  }

  int run(aclrtStream stream) {
    if (size > 0 && !workspace) workspace = device_memory(size);
    return aclnnEluBackward(workspace.get(), size, executor, stream);
  }

  std::vector<float> outcome() const { return host_copy(out_memory.get(), static_cast<size_t>(count)); }

  int64_t count;
  Memory grad_memory, result_memory, out_memory, workspace{nullptr, aclrtFree};
  Tensor grad, result, out;
  Scalar one;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
};

inline std::vector<float> elu_gradient(const std::vector<float>& grad, const std::vector<float>& result) {
  std::vector<float> expected;
  for (size_t i = 0; i < grad.size(); ++i) expected.push_back(result[i] > 0 ? grad[i] : grad[i] * (result[i] + 1));
  return expected;
}
