// A test that asks for the right refusal: no NPU product takes float64.
#include <cstdio>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

int main() {
  aclInit(nullptr);
  const int64_t shape[] = {4};
  aclTensor* tensor =
      aclCreateTensor(shape, 1, ACL_DOUBLE, nullptr, 0, ACL_FORMAT_ND, shape, 1, nullptr);
  float one = 1;
  aclScalar* scalar = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  aclnnStatus code = aclnnEluBackwardGetWorkspaceSize(
      tensor, scalar, scalar, scalar, true, tensor, tensor, &size, &executor);
  std::printf("%d %s\n", code, aclGetRecentErrMsg());
  aclDestroyTensor(tensor);
  aclDestroyScalar(scalar);
  aclFinalize();
  return code == ACLNN_ERR_PARAM_INVALID ? 0 : 1;
}
