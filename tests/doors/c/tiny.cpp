// The smallest whole program: the gradient of ELU of four numbers.
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

namespace {

aclTensor* device_tensor(std::vector<float>& values, void** memory) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  const size_t bytes = values.size() * sizeof(float);
  aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(*memory, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  return aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, *memory);
}

}  // namespace

int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  std::vector<float> y = {-2, -1, 0, 1}, result(4, 0);
  void *y_memory = nullptr, *result_memory = nullptr;
  aclTensor* y_tensor = device_tensor(y, &y_memory);
  aclTensor* result_tensor = device_tensor(result, &result_memory);
  float one = 1;
  aclScalar* scalar = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int code = aclnnEluBackwardGetWorkspaceSize(y_tensor, scalar, scalar, scalar, true, y_tensor, result_tensor, &size,
                                              &executor);
  if (code == 0) code = aclnnEluBackward(nullptr, size, executor, stream);
  if (code == 0) code = aclrtSynchronizeStream(stream);
  if (code != 0) std::printf("%d %s\n", code, aclGetRecentErrMsg());
  aclrtMemcpy(result.data(), 16, result_memory, 16, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("[%g, %g, %g, %g]\n", result[0], result[1], result[2], result[3]);
  aclDestroyTensor(y_tensor);
  aclDestroyTensor(result_tensor);
  aclDestroyScalar(scalar);
  aclrtFree(y_memory);
  aclrtFree(result_memory);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  return code;
}
