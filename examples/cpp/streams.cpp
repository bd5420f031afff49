// What a runtime is for: two devices, two streams, an event between them, and an executor that is planned once and run
// many times on changing memory.
//
//   aclnn cxx streams.cpp -o streams && ./streams
#include <memory>

#include "acl_raii.h"
#include "aclnnop/aclnn_elu_backward.h"

namespace {

constexpr int kBatches = 6;

class Event {
 public:
  Event() { acl::check(aclrtCreateEvent(&handle_), "aclrtCreateEvent"); }
  ~Event() { aclrtDestroyEvent(handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator aclrtEvent() const { return handle_; }

 private:
  aclrtEvent handle_ = nullptr;
};

// One plan for every batch: phase 1 once, then new addresses and phase 2 again and again.
class RepeatedElu {
 public:
  RepeatedElu(const acl::Tensor& grad, const acl::Tensor& result, const acl::Tensor& out) : one_(acl::scalar(1)) {
    uint64_t size = 0;
    acl::check(aclnnEluBackwardGetWorkspaceSize(grad.get(), one_.get(), one_.get(), one_.get(), true, result.get(),
                                                out.get(), &size, &executor_),
               "aclnnEluBackwardGetWorkspaceSize");
    acl::check(aclSetAclOpExecutorRepeatable(executor_), "aclSetAclOpExecutorRepeatable");
    workspace_ = acl::Memory(size);
  }
  ~RepeatedElu() { aclDestroyAclOpExecutor(executor_); }
  RepeatedElu(const RepeatedElu&) = delete;
  RepeatedElu& operator=(const RepeatedElu&) = delete;

  void run(const acl::Tensor& grad, const acl::Tensor& result, const acl::Tensor& out, const acl::Stream& stream) {
    acl::check(aclSetInputTensorAddr(executor_, 0, grad.get(), grad.address()), "aclSetInputTensorAddr");
    acl::check(aclSetInputTensorAddr(executor_, 1, result.get(), result.address()), "aclSetInputTensorAddr");
    acl::check(aclSetOutputTensorAddr(executor_, 0, out.get(), out.address()), "aclSetOutputTensorAddr");
    acl::check(aclnnEluBackward(workspace_.get(), workspace_.bytes(), executor_, stream), "aclnnEluBackward");
  }

 private:
  acl::Owned<aclScalar> one_;
  aclOpExecutor* executor_ = nullptr;
  acl::Memory workspace_;
};

float expected(float grad, float result) { return result > 0 ? grad : grad * (result + 1); }

bool train_nothing(int32_t device) {
  acl::check(aclrtSetDevice(device), "aclrtSetDevice");
  const acl::Stream compute, copy;
  const Event computed, began, ended;
  std::vector<acl::Tensor> grads, results, outs;
  for (int batch = 0; batch < kBatches; ++batch) {
    grads.emplace_back(acl::Shape{64}, acl::some(64, 0.1f * static_cast<float>(batch)));
    results.emplace_back(acl::Shape{64}, acl::some(64, 1.0f + 0.2f * static_cast<float>(batch)));
    outs.emplace_back(acl::Shape{64});
  }
  RepeatedElu elu(grads[0], results[0], outs[0]);
  acl::check(aclrtRecordEvent(began, compute), "aclrtRecordEvent");
  for (size_t batch = 0; batch < kBatches; ++batch) elu.run(grads[batch], results[batch], outs[batch], compute);
  acl::check(aclrtRecordEvent(computed, compute), "aclrtRecordEvent");

  // The copies run on their own stream and wait there, not here, for what they copy.
  std::vector<std::vector<float>> on_host(kBatches, std::vector<float>(64));
  acl::check(aclrtStreamWaitEvent(copy, computed), "aclrtStreamWaitEvent");
  for (size_t batch = 0; batch < kBatches; ++batch) {
    acl::check(aclrtMemcpyAsync(on_host[batch].data(), 256, outs[batch].address(), 256, ACL_MEMCPY_DEVICE_TO_HOST, copy),
               "aclrtMemcpyAsync");
  }
  acl::check(aclrtRecordEvent(ended, copy), "aclrtRecordEvent");
  copy.synchronize();

  bool right = true;
  for (size_t batch = 0; batch < kBatches; ++batch) {
    const std::vector<float> grad = grads[batch].read(), result = results[batch].read();
    for (size_t i = 0; i < 64; ++i) right &= std::fabs(on_host[batch][i] - expected(grad[i], result[i])) < 1e-6f;
  }
  float milliseconds = 0;
  acl::check(aclrtEventElapsedTime(&milliseconds, began, ended), "aclrtEventElapsedTime");
  std::printf("device %d: %d batches in %.2f ms, %s\n", device, kBatches, static_cast<double>(milliseconds),
              right ? "all right" : "WRONG");
  return right;
}

}  // namespace

int main() try {
  const acl::Runtime runtime;
  uint32_t devices = 0;
  acl::check(aclrtGetDeviceCount(&devices), "aclrtGetDeviceCount");
  bool right = true;
  for (int32_t device = 0; device < static_cast<int32_t>(devices); ++device) right &= train_nothing(device);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
