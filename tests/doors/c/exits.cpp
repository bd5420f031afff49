// Ways to leave: `exits MODE`. Whatever the mode, the process ends by itself, with the code it asked for.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "suite.h"

namespace {

const std::vector<float> kGrad = {-2, -1, 0, 1}, kResult = {-2, -1, 0, 1}, kExpected = {2, 0, 0, 1};

struct Busy {
  Busy() : elu(std::vector<float>(1 << 18, 1.0f), std::vector<float>(1 << 18, -0.5f)) {
    OK(aclrtCreateStream(&stream));
    OK(elu.plan());
    OK(aclSetAclOpExecutorRepeatable(elu.executor));
    for (int i = 0; i < 50; ++i) OK(elu.run(stream));
  }
  Elu elu;
  aclrtStream stream = nullptr;
};

void compute() {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT(elu.outcome() == kExpected);
}

// Work is queued on two streams and nobody waits for it.
int in_flight() {
  new Busy;
  new Busy;
  return 7;
}

// The same, and the memory is given back before the work is done.
int freed_in_flight() {
  Busy first, second;
  return 7;
}

int exit_from_another_thread() {
  new Busy;
  std::thread([] { std::exit(7); }).join();
  return 1;
}

// Work that will never be done: its stream waits for a callback that nobody runs.
int stuck() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  OK(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream));
  compute();
  return 7;
}

// A kernel that takes longer than an exit waits: only the engine in C++ has one.
int long_kernel() {
  Elu* slow = new Elu({777}, {1});
  OK(slow->plan());
  OK(slow->run(nullptr));
  std::printf("said before the end");
  return 7;
}

// Everything is destroyed after main, when operators are no longer taken but destroying still works.
struct Late {
  ~Late() {
    if (!busy) return;
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    const Elu& elu = busy->elu;
    const int code = aclnnEluBackwardGetWorkspaceSize(elu.grad.get(), elu.one.get(), elu.one.get(), elu.one.get(), true,
                                                      elu.result.get(), elu.out.get(), &size, &executor);
    if (code != 561000 || !said("the process is exiting")) _exit(1);
    if (aclnnEluBackward(nullptr, 0, elu.executor, busy->stream) != 561000) _exit(2);
    if (aclrtSynchronizeStream(busy->stream) != 0) _exit(3);
    if (aclDestroyAclOpExecutor(elu.executor) != 0) _exit(4);
    if (aclrtDestroyStream(busy->stream) != 0) _exit(5);
    if (aclrtFree(nullptr) != 100000 || !said("aclrtFree: the address is null; it must be given.")) _exit(6);
    if (*aclGetRecentErrMsg() != '\0') _exit(8);  // reading clears
    if (aclCreateIntArray(nullptr, 1) != nullptr || !said("aclCreateIntArray: value is null")) _exit(9);
  }
  std::unique_ptr<Busy> busy;
};
Late late;

int static_destructor() {
  compute();
  EXPECT_CODE(100000, aclrtFree(nullptr));  // this thread has messages, which end before static objects do
  late.busy = std::make_unique<Busy>();
  return 7;
}

int after_fork(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int fork_after_use() {
  compute();
  Busy busy;
  Elu elu(kGrad, kResult);
  const pid_t child = fork();
  if (child == 0) {
    EXPECT_CODE(561000, elu.plan());
    EXPECT(said("the process was forked"));
    EXPECT_CODE(561000, busy.elu.run(busy.stream));
    EXPECT_CODE(100000, aclrtSynchronizeStream(busy.stream));
    EXPECT(said("before a fork"));
    OK(aclrtDestroyStream(busy.stream));
    OK(aclDestroyAclOpExecutor(busy.elu.executor));
    int value = 0;
    const int next = 5;
    OK(aclrtMemcpyAsync(&value, 4, &next, 4, ACL_MEMCPY_HOST_TO_HOST, nullptr));  // a new default stream
    OK(aclrtSynchronizeStream(nullptr));
    EXPECT(value == 5);
    std::exit(6);
  }
  EXPECT(after_fork(child) == 6);
  compute();
  OK(aclrtDestroyStream(busy.stream));
  return 7;
}

int fork_before_use() {
  const pid_t child = fork();
  compute();
  if (child == 0) std::exit(6);
  EXPECT(after_fork(child) == 6);
  return 7;
}

// The thread that starts Python is gone when others use it.
int first_thread_ends() {
  std::thread(compute).join();
  std::thread(compute).join();
  compute();
  return 7;
}

}  // namespace

int main(int, char** arguments) {
  OK(aclInit(nullptr));
  OK(aclrtSetDevice(0));
  const std::string mode = arguments[1];
  if (mode == "in_flight") return in_flight();
  if (mode == "freed_in_flight") return freed_in_flight();
  if (mode == "exit_from_another_thread") return exit_from_another_thread();
  if (mode == "stuck") return stuck();
  if (mode == "long_kernel") return long_kernel();
  if (mode == "static_destructor") return static_destructor();
  if (mode == "fork_after_use") return fork_after_use();
  if (mode == "fork_before_use") return fork_before_use();
  if (mode == "first_thread_ends") return first_thread_ends();
  return 2;
}
