// Small owners for the objects of the C interface: each is made in a constructor and given back in a destructor, and
// every code that is not 0 becomes an exception with the sentence of aclGetRecentErrMsg.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

namespace acl {

using Shape = std::vector<int64_t>;

inline void check(int code, const char* what) {
  if (code == 0) return;
  throw std::runtime_error(std::string(what) + " answered " + std::to_string(code) + ": " + aclGetRecentErrMsg());
}

// aclInit … aclFinalize, with a device set in between.
class Runtime {
 public:
  explicit Runtime(int32_t device = 0) {
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(device), "aclrtSetDevice");
  }
  ~Runtime() { aclFinalize(); }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
};

class Stream {
 public:
  Stream() { check(aclrtCreateStream(&handle_), "aclrtCreateStream"); }
  ~Stream() { aclrtDestroyStream(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator aclrtStream() const { return handle_; }
  void synchronize() const { check(aclrtSynchronizeStream(handle_), "aclrtSynchronizeStream"); }

 private:
  aclrtStream handle_ = nullptr;
};

// Device memory. Zero bytes are no allocation at all.
class Memory {
 public:
  explicit Memory(size_t bytes = 0) : bytes_(bytes) {
    if (bytes > 0) check(aclrtMalloc(&address_, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  }
  Memory(Memory&& other) noexcept : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Memory() {
    if (address_ != nullptr) aclrtFree(address_);
  }
  void* get() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

// A dense float32 tensor with device memory of its own.
class Tensor {
 public:
  explicit Tensor(Shape shape, aclFormat format = ACL_FORMAT_ND)
      : shape_(std::move(shape)), format_(format), memory_(4 * size()), handle_(new_handle()) {}
  Tensor(Shape shape, const std::vector<float>& values, aclFormat format = ACL_FORMAT_ND)
      : Tensor(std::move(shape), format) {
    write(values);
  }
  Tensor(Tensor&& other) noexcept
      : shape_(other.shape_), format_(other.format_), memory_(std::move(other.memory_)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  ~Tensor() { aclDestroyTensor(handle_); }

  size_t size() const {
    size_t count = 1;
    for (const int64_t extent : shape_) count *= static_cast<size_t>(extent);
    return count;
  }
  const Shape& shape() const { return shape_; }
  aclTensor* get() const { return handle_; }
  void* address() const { return memory_.get(); }

  // Another aclTensor on the same memory, for an owner of its own.
  aclTensor* new_handle() const {
    aclTensor* made = aclCreateTensor(shape_.data(), shape_.size(), ACL_FLOAT, nullptr, 0, format_, shape_.data(),
                                      shape_.size(), memory_.get());
    if (made == nullptr) throw std::runtime_error(aclGetRecentErrMsg());
    return made;
  }

  void write(const std::vector<float>& values) {
    check(aclrtMemcpy(memory_.get(), memory_.bytes(), values.data(), 4 * values.size(), ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy");
  }
  std::vector<float> read() const {
    std::vector<float> values(size());
    check(aclrtMemcpy(values.data(), 4 * values.size(), memory_.get(), 4 * values.size(), ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy");
    return values;
  }

 private:
  Shape shape_;
  aclFormat format_;
  Memory memory_;
  aclTensor* handle_;
};

// An owner for every other kind of object: its handle and the function that destroys it.
template <class Object>
class Owned {
 public:
  Owned(Object* handle, aclnnStatus (*destroy)(const Object*)) : handle_(handle), destroy_(destroy) {
    if (handle == nullptr) throw std::runtime_error(aclGetRecentErrMsg());
  }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), destroy_(other.destroy_) {}
  ~Owned() { destroy_(handle_); }
  Object* get() const { return handle_; }

 private:
  Object* handle_;
  aclnnStatus (*destroy_)(const Object*);
};

inline Owned<aclScalar> scalar(float value) { return {aclCreateScalar(&value, ACL_FLOAT), aclDestroyScalar}; }

inline Owned<aclIntArray> integers(const Shape& values) {
  return {aclCreateIntArray(values.data(), values.size()), aclDestroyIntArray};
}

// A list destroys its members, so it gets handles of its own.
inline Owned<aclTensorList> list(const std::vector<const Tensor*>& tensors) {
  std::vector<const aclTensor*> handles;
  for (const Tensor* tensor : tensors) handles.push_back(tensor->new_handle());
  return {aclCreateTensorList(handles.data(), handles.size()), aclDestroyTensorList};
}

// Both phases: phase 1 with the arguments, workspace as it asks, phase 2, and the wait for the result.
template <class Phase1, class Phase2, class... Arguments>
void run(const char* name, Phase1 phase1, Phase2 phase2, const Stream& stream, Arguments... arguments) {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  check(phase1(arguments..., &size, &executor), name);
  const Memory workspace(size);
  check(phase2(workspace.get(), size, executor, stream), name);
  stream.synchronize();
}

#define ACL_RUN(operator_, stream, ...) \
  acl::run(#operator_, operator_##GetWorkspaceSize, operator_, stream, __VA_ARGS__)

// Values without a pattern: never all equal, never symmetric.
inline std::vector<float> some(size_t count, float phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(phase + 1.7f * static_cast<float>(i));
  return values;
}

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Whether a gradient agrees with the difference quotient of the loss it is the gradient of. The loss is given as a
// function of the input; step and tolerance suit float32.
inline bool agrees(const char* name, Tensor& input, const std::vector<float>& gradient,
                   const std::function<double()>& loss) {
  const std::vector<float> original = input.read();
  const float step = 1e-2f;
  double worst = 0;
  for (size_t i = 0; i < original.size(); ++i) {
    std::vector<float> moved = original;
    moved[i] = original[i] + step;
    input.write(moved);
    const double above = loss();
    moved[i] = original[i] - step;
    input.write(moved);
    const double below = loss();
    worst = std::max(worst, std::fabs((above - below) / (2.0 * step) - gradient[i]));
  }
  input.write(original);
  std::printf("%-12s %zu derivatives, at most %.1e from the difference quotient\n", name, gradient.size(), worst);
  return worst < 1e-3;
}

}  // namespace acl
