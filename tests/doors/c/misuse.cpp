// `misuse MODE`, to be run with ACLNN_CHECK=1: each mode makes one mistake that hardware would not forgive.
#include <pthread.h>

#include <malloc.h>

#include "suite.h"

namespace {

const std::vector<float> kGrad = {-2, -1, 0, 1}, kResult = {-2, -1, 0, 1};

void view_outside_allocation() {
  Elu elu(kGrad, kResult);
  Memory small = device_memory(8);
  OK(aclSetRawTensorAddr(elu.out.get(), small.get()));
  OK(elu.plan());
  EXPECT_CODE(161002, elu.run(nullptr));
  OK(aclDestroyAclOpExecutor(elu.executor));
}

void host_pointer() {
  Elu elu(kGrad, kResult);
  float out[4] = {};
  OK(aclSetRawTensorAddr(elu.out.get(), out));
  OK(elu.plan());
  OK(elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT(out[0] == 2);
  OK(aclrtMemcpy(out, 16, kGrad.data(), 16, ACL_MEMCPY_HOST_TO_DEVICE));
}

void freed_too_early() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  OK(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream));  // holds the stream back
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(elu.run(stream));
  elu.grad_memory.reset();
  OK(aclrtProcessReport(-1));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome()[0] == 2);
  OK(aclrtDestroyStream(stream));
}

void workspace_too_small() {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  Memory small = device_memory(16);
  EXPECT_CODE(161002, aclnnEluBackward(small.get(), 4096, elu.executor, nullptr));
  OK(elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
}

void executor_reused() {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(elu.run(nullptr));
  EXPECT_CODE(561000, elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
}

void nothing() {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
}

size_t bytes_in_use() { return mallinfo2().uordblks; }

// What checking remembers of executors that ran does not grow with their number.
void many_runs() {
  size_t before = 0;
  for (int i = 0; i < 22000; ++i) {
    if (i == 2000) before = bytes_in_use();
    nothing();
  }
  const size_t after = bytes_in_use();
  if (after > before + 400000) std::printf("%zu bytes more\n", after - before);
  EXPECT(after <= before + 400000);  // 20 bytes a run
}

void destroyed_twice() {
  Elu elu(kGrad, kResult);
  OK(aclDestroyTensor(elu.grad.get()));
}

void leaks() {
  float one = 1;
  aclCreateScalar(&one, ACL_FLOAT);
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, 24, ACL_MEM_MALLOC_HUGE_FIRST));
}

}  // namespace

int main(int, char** arguments) {
  const std::string mode = arguments[1];
  OK(aclInit(nullptr));
  if (mode != "no_device") OK(aclrtSetDevice(0));
  if (mode == "view_outside_allocation") view_outside_allocation();
  if (mode == "host_pointer") host_pointer();
  if (mode == "freed_too_early") freed_too_early();
  if (mode == "workspace_too_small") workspace_too_small();
  if (mode == "executor_reused") executor_reused();
  if (mode == "many_runs") many_runs();
  if (mode == "destroyed_twice") destroyed_twice();
  if (mode == "leaks") leaks();
  if (mode == "nothing" || mode == "no_device") nothing();
  OK(aclFinalize());
}
