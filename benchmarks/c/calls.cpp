// What a call of the C interface costs before any work: the gradient of ELU on a few elements, in microseconds.
//
//   aclnn cxx -O2 benchmarks/c/calls.cpp -o calls && ./calls [elements, default 4]
//
// Every figure is the least of some rounds, and every round is checked for its results.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

namespace {

constexpr int kRounds = 60, kCalls = 300;
constexpr int kTurns = 20;  // of so many calls that each of two threads takes: starting one of them must not count

void need(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s answers %d: %s\n", what, code, aclGetRecentErrMsg());
  std::exit(1);
}
#define NEED(call) need(call, #call)

// One call with its memory and its stream.
class Elu {
 public:
  explicit Elu(int64_t count) : count_(count) {
    NEED(aclrtCreateStream(&stream_));
    for (int i = 0; i < 3; ++i) {
      NEED(aclrtMalloc(&memory_[i], static_cast<size_t>(count) * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
      tensors_[i] = aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, memory_[i]);
    }
    for (int64_t i = 0; i < count; ++i) numbers(0)[i] = 2, numbers(1)[i] = -0.25f;
    float one = 1;
    one_ = aclCreateScalar(&one, ACL_FLOAT);
  }

  void plan() {
    uint64_t size = 0;
    NEED(aclnnEluBackwardGetWorkspaceSize(tensors_[0], one_, one_, one_, true, tensors_[1], tensors_[2], &size, &executor_));
    if (size != 0) need(1, "a workspace is not expected here; the call");
  }
  void run() { NEED(aclnnEluBackward(nullptr, 0, executor_, stream_)); }
  void synchronize() { NEED(aclrtSynchronizeStream(stream_)); }
  void make_repeatable() { NEED(aclSetAclOpExecutorRepeatable(executor_)); }
  void destroy() { NEED(aclDestroyAclOpExecutor(executor_)); }

  void forget() { numbers(2)[0] = numbers(2)[count_ - 1] = 0; }
  void check() {
    if (numbers(2)[0] == 1.5f && numbers(2)[count_ - 1] == 1.5f) return;
    std::fprintf(stderr, "the result is %g and %g, not 1.5\n", numbers(2)[0], numbers(2)[count_ - 1]);
    std::exit(1);
  }

 private:
  float* numbers(int i) { return static_cast<float*>(memory_[i]); }

  int64_t count_;
  aclrtStream stream_ = nullptr;
  void* memory_[3];
  aclTensor* tensors_[3];
  aclScalar* one_;
  aclOpExecutor* executor_ = nullptr;
};

double microseconds(const std::function<void()>& work) {
  double least = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    least = std::min(least, took.count() / kCalls);
  }
  return least;
}

void both_phases(Elu& elu, bool synchronize) {
  elu.forget();
  for (int i = 0; i < kCalls; ++i) {
    elu.plan();
    elu.run();
    if (synchronize) elu.synchronize();
  }
  elu.synchronize();
  elu.check();
}

void repeated(Elu& elu, bool synchronize) {
  elu.forget();
  for (int i = 0; i < kCalls; ++i) {
    elu.run();
    if (synchronize) elu.synchronize();
  }
  elu.synchronize();
  elu.check();
}

// How many times the calls of one thread two threads make in the same time, each on a stream of its own.
double two_threads(int64_t count, bool synchronize) {
  Elu first(count), second(count);
  const auto calls = [&](Elu& elu) {
    for (int turn = 0; turn < kTurns; ++turn) both_phases(elu, synchronize);
  };
  const double alone = microseconds([&] { calls(first); });
  const double together = microseconds([&] {
    std::thread other([&] { calls(second); });
    calls(first);
    other.join();
  });
  return 2 * alone / together;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 4;
  NEED(aclInit(nullptr));
  NEED(aclrtSetDevice(0));
  Elu elu(count);
  std::printf("phase 1, and the executor destroyed  %7.2f us\n", microseconds([&] {
                for (int i = 0; i < kCalls; ++i) {
                  elu.plan();
                  elu.destroy();
                }
              }));
  std::printf("both phases                          %7.2f us\n", microseconds([&] { both_phases(elu, false); }));
  std::printf("both phases, synchronized            %7.2f us\n", microseconds([&] { both_phases(elu, true); }));
  elu.plan();
  elu.make_repeatable();
  std::printf("repeatable                           %7.2f us\n", microseconds([&] { repeated(elu, false); }));
  std::printf("repeatable, synchronized             %7.2f us\n", microseconds([&] { repeated(elu, true); }));
  std::printf("two threads, two streams             %7.2f times one\n", two_threads(count, false));
  std::printf("two threads, two streams, synchronized %5.2f times one\n", two_threads(count, true));
  return 0;
}
