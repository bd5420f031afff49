// What a small call of the C interface costs, in microseconds: the gradient of ELU, of a convolution, or an LSTM.
//
//   aclnn cxx -O2 benchmarks/c/calls.cpp -o calls && ./calls [elu | convolution | lstm] [elements, channels or units: 4]
//
// Every figure is the least of some rounds, and every round is checked for its results. How many calls two threads make is
// said beside what two processes do, which share nothing but the machine: no more can be had. With `pinned` as the third
// argument each has a core of its own.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_lstm.h"

namespace {

constexpr int kRounds = 60, kCalls = 300;
constexpr double kPatience = 1e6;  // microseconds, after which a fourth round or a later one does not begin
constexpr double kBeside = 1e5;  // microseconds that two work beside each other: a busy machine needs some of them to find
                                 // each a core
constexpr int kTurns = 9;  // of one, two threads, two processes: the machine may change in between

void need(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s answers %d: %s\n", what, code, aclGetRecentErrMsg());
  std::exit(1);
}
#define NEED(call) need(call, #call)

// A call on a stream of its own, with memory that is never freed.
class Job {
 public:
  virtual ~Job() = default;
  virtual void plan() = 0;
  virtual aclnnStatus phase_2() = 0;

  void run() { need(phase_2(), "phase 2"); }
  void synchronize() { NEED(aclrtSynchronizeStream(stream_)); }
  void make_repeatable() { NEED(aclSetAclOpExecutorRepeatable(executor_)); }
  void destroy() { NEED(aclDestroyAclOpExecutor(executor_)); }

  void forget() { for (const auto& out : outputs_) std::fill(out.begin, out.end, 0.0f); }
  // The same in every round, and not what `forget` left.
  void check() {
    std::vector<float> found;
    for (const auto& out : outputs_) found.insert(found.end(), out.begin, out.end);
    if (wanted_.empty()) wanted_ = found;
    if (found == wanted_ && std::count(found.begin(), found.end(), 0.0f) * 2 < static_cast<long>(found.size())) return;
    std::fprintf(stderr, "the result is not that of the first round, or it is not there\n");
    std::exit(1);
  }

 protected:
  Job() { NEED(aclrtCreateStream(&stream_)); }

  aclTensor* tensor(const std::vector<int64_t>& shape, aclFormat format = ACL_FORMAT_ND, bool is_output = false) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    void* memory = nullptr;
    NEED(aclrtMalloc(&memory, count * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
    auto* numbers = static_cast<float*>(memory);
    for (size_t i = 0; i < count; ++i) numbers[i] = 0.125f * static_cast<float>(1 + i % 5);
    if (is_output) outputs_.push_back({numbers, numbers + count});
    return aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, format, shape.data(), shape.size(), memory);
  }
  aclTensor* out(const std::vector<int64_t>& shape, aclFormat format = ACL_FORMAT_ND) { return tensor(shape, format, true); }
  aclTensorList* list(const std::vector<aclTensor*>& members) { return aclCreateTensorList(members.data(), members.size()); }

  void planned(aclnnStatus code) {
    need(code, "phase 1");
    if (size_ > workspace_.size()) workspace_.resize(size_);
  }
  void* workspace() { return size_ > 0 ? workspace_.data() : nullptr; }

  struct Output {
    float *begin, *end;
  };
  std::vector<Output> outputs_;
  std::vector<float> wanted_;
  std::vector<char> workspace_;
  uint64_t size_ = 0;
  aclOpExecutor* executor_ = nullptr;
  aclrtStream stream_ = nullptr;
};

class Elu : public Job {
 public:
  explicit Elu(int64_t count) : gradient_(tensor({count})), result_(tensor({count})), made_(out({count})) {
    float one = 1;
    one_ = aclCreateScalar(&one, ACL_FLOAT);
  }
  void plan() override {
    planned(aclnnEluBackwardGetWorkspaceSize(gradient_, one_, one_, one_, true, result_, made_, &size_, &executor_));
  }
  aclnnStatus phase_2() override { return aclnnEluBackward(workspace(), size_, executor_, stream_); }

 private:
  aclTensor *gradient_, *result_, *made_;
  aclScalar* one_;
};

// Both gradients of a 3×3 convolution, of so many channels on both sides.
class Convolution : public Job {
 public:
  explicit Convolution(int64_t channels)
      : gradient_(tensor({1, channels, 6, 6}, ACL_FORMAT_NCHW)),
        input_(tensor({1, channels, 6, 6}, ACL_FORMAT_NCHW)),
        weight_(tensor({channels, channels, 3, 3}, ACL_FORMAT_NCHW)),
        of_input_(out({1, channels, 6, 6}, ACL_FORMAT_NCHW)),
        of_weight_(out({channels, channels, 3, 3}, ACL_FORMAT_NCHW)) {
    const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
    const bool mask[] = {true, true, false};
    ones_ = aclCreateIntArray(ones, 2);
    zeros_ = aclCreateIntArray(zeros, 2);
    mask_ = aclCreateBoolArray(mask, 3);
  }
  void plan() override {
    planned(aclnnConvolutionBackwardGetWorkspaceSize(gradient_, input_, weight_, nullptr, ones_, ones_, ones_, false,
                                                     zeros_, 1, mask_, 0, of_input_, of_weight_, nullptr, &size_,
                                                     &executor_));
  }
  aclnnStatus phase_2() override { return aclnnConvolutionBackward(workspace(), size_, executor_, stream_); }

 private:
  aclTensor *gradient_, *input_, *weight_, *of_input_, *of_weight_;
  aclIntArray *ones_, *zeros_;
  aclBoolArray* mask_;
};

// An LSTM forwards, of two steps and two sequences, with as many features as units.
class Lstm : public Job {
 public:
  explicit Lstm(int64_t units)
      : input_(tensor({2, 2, units})), output_(out({2, 2, units})), h_(out({1, 2, units})), c_(out({1, 2, units})) {
    const std::vector<int64_t> weight = {4 * units, units}, bias = {4 * units}, state = {1, 2, units};
    weights_ = list({tensor(weight), tensor(weight), tensor(bias), tensor(bias)});
    states_ = list({tensor(state), tensor(state)});
  }
  void plan() override {
    planned(aclnnLSTMGetWorkspaceSize(input_, weights_, states_, nullptr, true, 1, 0.0, false, false, false, output_, h_,
                                      c_, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &size_,
                                      &executor_));
  }
  aclnnStatus phase_2() override { return aclnnLSTM(workspace(), size_, executor_, stream_); }

 private:
  aclTensor *input_, *output_, *h_, *c_;
  aclTensorList *weights_, *states_;
};

std::unique_ptr<Job> make(const std::string& name, int64_t size) {
  if (name == "elu") return std::unique_ptr<Job>(new Elu(size));
  if (name == "convolution") return std::unique_ptr<Job>(new Convolution(size));
  if (name == "lstm") return std::unique_ptr<Job>(new Lstm(size));
  need(1, "there are elu, convolution and lstm; another");
  return nullptr;
}

double microseconds(const std::function<void()>& work) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  double least = 1e30, all = 0;
  for (int round = 0; round < 3 || (round < kRounds && all < kPatience); ++round) {
    const auto began = std::chrono::steady_clock::now();
    work();
    const double took = Microseconds(std::chrono::steady_clock::now() - began).count();
    least = std::min(least, took / kCalls);
    all += took;
  }
  return least;
}

void both_phases(Job& job, bool synchronize) {
  job.forget();
  for (int i = 0; i < kCalls; ++i) {
    job.plan();
    job.run();
    if (synchronize) job.synchronize();
  }
  job.synchronize();
  job.check();
}

void repeated(Job& job, bool synchronize) {
  job.forget();
  for (int i = 0; i < kCalls; ++i) {
    job.run();
    if (synchronize) job.synchronize();
  }
  job.synchronize();
  job.check();
}

void many(Job& job, int turns, bool synchronize) {
  for (int turn = 0; turn < turns; ++turn) both_phases(job, synchronize);
}

bool pinned = false;

void go_to_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (pinned) need(pthread_setaffinity_np(pthread_self(), sizeof set, &set), "the second core");
}

// Another process that makes the same calls when it is told to.
class Twin {
 public:
  Twin(const std::string& name, int64_t size) {
    need(pipe(orders_) || pipe(answers_), "pipe");
    process_ = fork();  // before the library has anything that a child could not use
    if (process_ == 0) serve(name, size);
  }
  ~Twin() {
    close(orders_[1]);
    waitpid(process_, nullptr, 0);
  }
  void begin(int turns, bool synchronize) {
    const Order order = {turns, synchronize};
    need(write(orders_[1], &order, sizeof order) != sizeof order, "the other process");
  }
  void wait() {
    char done;
    need(read(answers_[0], &done, 1) != 1, "the other process");
  }

 private:
  struct Order {
    int turns;
    bool synchronize;
  };
  [[noreturn]] void serve(const std::string& name, int64_t size) {
    close(orders_[1]);
    go_to_core(1);
    NEED(aclrtSetDevice(0));
    const std::unique_ptr<Job> job = make(name, size);
    for (Order order; read(orders_[0], &order, sizeof order) == sizeof order;) {
      many(*job, order.turns, order.synchronize);
      need(write(answers_[1], "", 1) != 1, "the first process");
    }
    std::exit(0);
  }
  int orders_[2], answers_[2];
  pid_t process_;
};

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

double seconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// How many times the calls of one thread two threads make in the same time, each on a stream of its own, and how many two
// processes.
void print_two(const char* what, Job& first, Job& second, Twin& twin, bool synchronize) {
  const int turns = 1 + static_cast<int>(kBeside / kCalls / microseconds([&] { both_phases(first, synchronize); }));
  twin.begin(1, synchronize);  // it may have to start its Python first
  twin.wait();
  std::vector<double> threads, processes;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double alone = seconds([&] { many(first, turns, synchronize); });
    threads.push_back(2 * alone / seconds([&] {
      std::thread other([&] {
        go_to_core(1);
        many(second, turns, synchronize);
      });
      many(first, turns, synchronize);
      other.join();
    }));
    processes.push_back(2 * alone / seconds([&] {
      twin.begin(turns, synchronize);
      many(first, turns, synchronize);
      twin.wait();
    }));
  }
  std::printf("%-38s %5.2f times one, two processes %.2f times one\n", what, median(threads), median(processes));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "elu";
  const int64_t size = argc > 2 ? std::atoll(argv[2]) : 4;
  pinned = argc > 3 && std::string(argv[3]) == "pinned";
  Twin twin(name, size);
  go_to_core(0);
  NEED(aclInit(nullptr));
  NEED(aclrtSetDevice(0));
  const std::unique_ptr<Job> job = make(name, size), other = make(name, size);
  std::printf("phase 1, and the executor destroyed  %7.2f us\n", microseconds([&] {
                for (int i = 0; i < kCalls; ++i) {
                  job->plan();
                  job->destroy();
                }
              }));
  std::printf("both phases                          %7.2f us\n", microseconds([&] { both_phases(*job, false); }));
  std::printf("both phases, synchronized            %7.2f us\n", microseconds([&] { both_phases(*job, true); }));
  job->plan();
  job->make_repeatable();
  std::printf("repeatable                           %7.2f us\n", microseconds([&] { repeated(*job, false); }));
  std::printf("repeatable, synchronized             %7.2f us\n", microseconds([&] { repeated(*job, true); }));
  print_two("two threads, two streams", *job, *other, twin, false);
  print_two("two threads, two streams, synchronized", *job, *other, twin, true);
  return 0;
}
