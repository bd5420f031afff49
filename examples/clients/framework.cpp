// How a framework calls operators: libraries by dlopen, tensors wrapped in a class of its own, executors cached by shape,
// several streams joined by events, handles kept in int64, and descriptions destroyed before the stream has run.
// Nothing of the toolkit is linked; only its headers are used.
//
//   g++ -std=c++14 framework.cpp -I$ASCEND_HOME_PATH/include -ldl -pthread -o framework && ./framework 1000
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"

namespace {

// The folder of the toolkit, as programs look for it.
std::string toolkit() {
  for (const char* name : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME"}) {
    if (const char* found = std::getenv(name)) return found;
  }
  return "/usr/local/Ascend/ascend-toolkit/latest";
}

void* open_library(const char* name) {
  void* library = dlopen((toolkit() + "/lib64/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

// A function of the toolkit under its own type, found when it is first needed.
template <class Function>
Function* find(const char* library, const char* name) {
  void* found = dlsym(open_library(library), name);
  if (found == nullptr) throw std::runtime_error(std::string(name) + " is not in " + library);
  return reinterpret_cast<Function*>(found);
}

#define RUNTIME(name) static const auto call_##name = find<decltype(name)>("libascendcl.so", #name)
#define OBJECTS(name) static const auto call_##name = find<decltype(name)>("libnnopbase.so", #name)
#define OPERATOR(name) static const auto call_##name = find<decltype(name)>("libopapi.so", #name)

void check(int code, const char* what) {
  if (code == 0) return;
  RUNTIME(aclGetRecentErrMsg);
  throw std::runtime_error(std::string(what) + ": " + std::to_string(code) + " " + call_aclGetRecentErrMsg());
}

// A stream as many frameworks keep one: in an int64.
class Stream {
 public:
  Stream() {
    RUNTIME(aclrtCreateStreamWithConfig);
    aclrtStream made = nullptr;
    check(call_aclrtCreateStreamWithConfig(&made, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC), "create a stream");
    number_ = reinterpret_cast<int64_t>(made);
    if (number_ <= 0) throw std::runtime_error("a stream does not fit into an int64");
  }
  ~Stream() {
    RUNTIME(aclrtDestroyStreamForce);
    call_aclrtDestroyStreamForce(get());
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  aclrtStream get() const { return reinterpret_cast<aclrtStream>(number_); }

 private:
  int64_t number_ = 0;
};

class Event {
 public:
  Event() {
    RUNTIME(aclrtCreateEventExWithFlag);
    check(call_aclrtCreateEventExWithFlag(&handle_, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), "create an event");
  }
  ~Event() {
    RUNTIME(aclrtDestroyEvent);
    call_aclrtDestroyEvent(handle_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream) {
    RUNTIME(aclrtRecordEvent);
    check(call_aclrtRecordEvent(handle_, stream.get()), "record");
  }
  void hold_up(const Stream& stream) {
    RUNTIME(aclrtStreamWaitEvent);
    check(call_aclrtStreamWaitEvent(stream.get(), handle_), "wait for an event");
  }
  bool query() {
    RUNTIME(aclrtQueryEvent);
    aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
    check(call_aclrtQueryEvent(handle_, &status), "query");
    return status == ACL_EVENT_STATUS_COMPLETE;
  }

 private:
  aclrtEvent handle_ = nullptr;
};

// The framework's own tensor: device memory and a shape. What the toolkit sees of it is made for a call and destroyed
// right after, whether or not the stream has run.
class Tensor {
 public:
  explicit Tensor(std::vector<int64_t> shape) : shape_(std::move(shape)) {
    RUNTIME(aclrtMalloc);
    void* memory = nullptr;
    check(call_aclrtMalloc(&memory, bytes(), ACL_MEM_MALLOC_HUGE_FIRST), "allocate");
    RUNTIME(aclrtFree);
    memory_ = {memory, call_aclrtFree};
  }
  Tensor(std::vector<int64_t> shape, const std::vector<float>& values) : Tensor(std::move(shape)) {
    RUNTIME(aclrtMemcpy);
    check(call_aclrtMemcpy(memory_.get(), bytes(), values.data(), bytes(), ACL_MEMCPY_HOST_TO_DEVICE), "copy");
  }

  size_t count() const {
    size_t product = 1;
    for (const int64_t size : shape_) product *= static_cast<size_t>(size);
    return product;
  }
  size_t bytes() const { return count() * sizeof(float); }
  const std::vector<int64_t>& shape() const { return shape_; }
  void* address() const { return memory_.get(); }

  std::vector<float> read() const {
    RUNTIME(aclrtMemcpy);
    std::vector<float> values(count());
    check(call_aclrtMemcpy(values.data(), bytes(), memory_.get(), bytes(), ACL_MEMCPY_DEVICE_TO_HOST), "copy back");
    return values;
  }

 private:
  std::vector<int64_t> shape_;
  std::unique_ptr<void, aclError (*)(void*)> memory_{nullptr, nullptr};
};

using Described = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)>;
using Number = std::unique_ptr<aclScalar, aclnnStatus (*)(const aclScalar*)>;

Described described(const Tensor& tensor) {
  OBJECTS(aclCreateTensor);
  OBJECTS(aclDestroyTensor);
  const auto& shape = tensor.shape();
  Described made(call_aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape.data(),
                                      shape.size(), tensor.address()),
                 call_aclDestroyTensor);
  if (!made) throw std::runtime_error("a tensor could not be described");
  return made;
}

Number number(float value) {
  OBJECTS(aclCreateScalar);
  OBJECTS(aclDestroyScalar);
  return Number(call_aclCreateScalar(&value, ACL_FLOAT), call_aclDestroyScalar);
}

struct Planned {
  aclOpExecutor* executor;
  uint64_t workspace;
};

// Executors by shape: planned once, then only given other addresses.
class ExecutorCache {
 public:
  ~ExecutorCache() {
    OBJECTS(aclDestroyAclOpExecutor);
    for (const auto& entry : by_shape_) call_aclDestroyAclOpExecutor(entry.second.executor);
  }

  void elu_backward(const Tensor& grad, const Tensor& result, const Tensor& out, const Stream& stream) {
    const Described g = described(grad), r = described(result), o = described(out);
    const auto found = by_shape_.find(grad.shape());
    const Planned& planned = found != by_shape_.end() ? found->second : plan(grad.shape(), g.get(), r.get(), o.get());
    OBJECTS(aclSetInputTensorAddr);
    OBJECTS(aclSetOutputTensorAddr);
    check(call_aclSetInputTensorAddr(planned.executor, 0, g.get(), grad.address()), "set an address");
    check(call_aclSetInputTensorAddr(planned.executor, 1, r.get(), result.address()), "set an address");
    check(call_aclSetOutputTensorAddr(planned.executor, 0, o.get(), out.address()), "set an address");
    OPERATOR(aclnnEluBackward);
    check(call_aclnnEluBackward(nullptr, planned.workspace, planned.executor, stream.get()), "aclnnEluBackward");
  }

 private:
  const Planned& plan(const std::vector<int64_t>& shape, aclTensor* grad, aclTensor* result, aclTensor* out) {
    const Number one = number(1);
    Planned made = {nullptr, 0};
    OPERATOR(aclnnEluBackwardGetWorkspaceSize);
    check(call_aclnnEluBackwardGetWorkspaceSize(grad, one.get(), one.get(), one.get(), true, result, out,
                                                &made.workspace, &made.executor),
          "aclnnEluBackwardGetWorkspaceSize");
    OBJECTS(aclSetAclOpExecutorRepeatable);
    check(call_aclSetAclOpExecutorRepeatable(made.executor), "make an executor repeatable");
    return by_shape_.emplace(shape, made).first->second;
  }

  std::map<std::vector<int64_t>, Planned> by_shape_;
};

// Both phases for one call. The descriptions and the numbers end here, before the stream has run.
void elu(const Tensor& x, const Tensor& y, const Stream& stream) {
  const Described in = described(x), out = described(y);
  const Number one = number(1);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  OPERATOR(aclnnEluGetWorkspaceSize);
  check(call_aclnnEluGetWorkspaceSize(in.get(), one.get(), one.get(), one.get(), out.get(), &size, &executor),
        "aclnnEluGetWorkspaceSize");
  OPERATOR(aclnnElu);
  check(call_aclnnElu(nullptr, size, executor, stream.get()), "aclnnElu");
}

std::vector<float> some(size_t count, int seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i * 7 + static_cast<size_t>(seed)));
  return values;
}

bool is_right(const std::vector<float>& x, const std::vector<float>& grad, const std::vector<float>& y,
              const std::vector<float>& dx) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float wanted = x[i] > 0 ? x[i] : std::expm1(x[i]);
    const float slope = y[i] > 0 ? grad[i] : grad[i] * (y[i] + 1);
    if (std::fabs(y[i] - wanted) > 1e-6f || std::fabs(dx[i] - slope) > 1e-6f) return false;
  }
  return true;
}

// One step: forward on one stream, backward on another that waits for it by an event. Two operator calls.
class Framework {
 public:
  void step(int number) {
    const std::vector<int64_t> shape = {1 + number % 5, 8 + number % 3};
    const size_t count = static_cast<size_t>(shape[0] * shape[1]);
    Pending pending = {Tensor(shape, some(count, number)), Tensor(shape, some(count, number + 1)), Tensor(shape),
                       Tensor(shape), std::unique_ptr<Event>(new Event)};
    Event forward_done;  // destroyed before anyone has waited for it
    elu(pending.x, pending.y, streams_[0]);
    forward_done.record(streams_[0]);
    forward_done.hold_up(streams_[1 + number % 2]);
    cache_.elu_backward(pending.grad, pending.y, pending.dx, streams_[1 + number % 2]);
    pending.done->record(streams_[1 + number % 2]);
    pending_.push_back(std::move(pending));
    if (pending_.size() >= 32) collect();
  }

  // Counts the right ones among the steps that are under way.
  void collect() {
    RUNTIME(aclrtSynchronizeDevice);
    check(call_aclrtSynchronizeDevice(), "synchronize");
    for (const Pending& one : pending_) {
      right_ += one.done->query() && is_right(one.x.read(), one.grad.read(), one.y.read(), one.dx.read()) ? 2 : 0;
    }
    pending_.clear();
  }

  int right() const { return right_; }

 private:
  // What the streams still work on: memory lives until they are done.
  struct Pending {
    Tensor x, grad, y, dx;
    std::unique_ptr<Event> done;
  };
  Stream streams_[3];
  ExecutorCache cache_;
  std::vector<Pending> pending_;
  int right_ = 0;
};

int run(int calls) {
  RUNTIME(aclInit);
  RUNTIME(aclrtSetDevice);
  RUNTIME(aclFinalize);
  check(call_aclInit(nullptr), "aclInit");
  check(call_aclrtSetDevice(0), "aclrtSetDevice");
  int right = 0;
  {
    Framework framework;
    for (int number = 0; number < calls / 2; ++number) framework.step(number);
    framework.collect();
    right = framework.right();
  }
  check(call_aclFinalize(), "aclFinalize");
  std::printf("%d of %d calls right\n", right, calls / 2 * 2);
  return right == calls / 2 * 2 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) try {
  return run(count > 1 ? std::atoi(words[1]) : 200);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
