// `dlopened LIBRARY local|global`: everything from one handle, as plug-ins do it.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

#define FIND(name) const auto name##_ = reinterpret_cast<decltype(&name)>(dlsym(library, #name))

int main(int, char** arguments) {
  const int scope = std::strcmp(arguments[2], "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL;
  void* library = dlopen(arguments[1], RTLD_NOW | scope);
  if (library == nullptr) {
    std::puts(dlerror());
    return 1;
  }
  FIND(aclInit);
  FIND(aclCreateTensor);
  FIND(aclCreateScalar);
  FIND(aclnnEluBackwardGetWorkspaceSize);
  FIND(aclnnEluBackward);
  FIND(aclrtSynchronizeStream);
  FIND(aclGetRecentErrMsg);
  aclInit_(nullptr);
  float grad[4] = {-2, -1, 0, 1}, result[4] = {-2, -1, 0, 1}, out[4] = {}, one = 1;
  const int64_t shape[] = {4};
  const auto tensor = [&](float* data) {
    return aclCreateTensor_(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  };
  aclScalar* scalar = aclCreateScalar_(&one, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int code = aclnnEluBackwardGetWorkspaceSize_(tensor(grad), scalar, scalar, scalar, true, tensor(result), tensor(out),
                                               &size, &executor);
  if (code == 0) code = aclnnEluBackward_(nullptr, size, executor, nullptr);
  if (code == 0) code = aclrtSynchronizeStream_(nullptr);
  if (code != 0) std::printf("%d %s\n", code, aclGetRecentErrMsg_());
  std::printf("[%g, %g, %g, %g]\n", out[0], out[1], out[2], out[3]);
  dlclose(library);  // the library stays: its workers need it
  return code == 0 ? 0 : 1;
}
