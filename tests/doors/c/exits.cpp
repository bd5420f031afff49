// Ways to leave: `exits MODE`. Whatever the mode, the process ends by itself, with the code it asked for.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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
  Elu* slow = new Elu({777, 777}, {1, 1});  // an even number: the engine of the tests leaves it to the worker
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

// In a child that must not hang: it is killed if it does.
[[noreturn]] void answer(void (*work)()) {
  alarm(20);
  work();
  std::exit(6);
}

// What the parent has at work when it forks. The thread that would run the callback never does.
struct AtWork {
  AtWork() : elu(kGrad, kResult) {
    compute();
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEvent(&event));
    OK(aclrtSubscribeReport(1, stream));
    OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), other));
    OK(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtRecordEvent(event, stream));
    OK(elu.plan());
    OK(aclSetAclOpExecutorRepeatable(elu.executor));
  }
  Elu elu;
  aclrtStream stream = nullptr, other = nullptr;
  aclrtEvent event = nullptr;
};
AtWork* at_work = nullptr;

// Every function that takes something of the parent answers, with a code and a sentence where it cannot do its work.
void use_what_is_the_parents() {
  aclrtEventRecordedStatus status;
  float milliseconds = 0;
  const AtWork& its = *at_work;
  EXPECT_CODE(100000, aclrtSynchronizeEvent(its.event));
  EXPECT(said("event was made before a fork"));
  EXPECT_CODE(100000, aclrtQueryEventStatus(its.event, &status));
  EXPECT_CODE(100000, aclrtRecordEvent(its.event, nullptr));
  EXPECT_CODE(100000, aclrtStreamWaitEvent(nullptr, its.event));
  EXPECT_CODE(100000, aclrtEventElapsedTime(&milliseconds, its.event, its.event));
  EXPECT_CODE(100000, aclrtSynchronizeStream(its.stream));
  EXPECT_CODE(107000, aclrtProcessReport(-1));
  EXPECT(said("has not subscribed"));
  EXPECT_CODE(561000, aclSetAclOpExecutorRepeatable(its.elu.executor));
  EXPECT(said("executor was made before a fork"));
  EXPECT_CODE(561000, aclSetInputTensorAddr(its.elu.executor, 0, its.elu.grad.get(), nullptr));
  EXPECT_CODE(561000, aclnnEluBackward(nullptr, 0, its.elu.executor, nullptr));
  OK(aclDestroyAclOpExecutor(its.elu.executor));
  OK(aclrtDestroyEvent(its.event));
  OK(aclrtDestroyStream(its.stream));
  OK(aclrtSynchronizeDevice());
  int value = 0;
  OK(aclrtMemsetAsync(&value, 4, 1, 4, nullptr));
  OK(aclrtSynchronizeDevice());
  EXPECT(value == 0x01010101);
}

int leave_at_work(pid_t child) {
  EXPECT(after_fork(child) == 6);
  OK(aclrtUnSubscribeReport(1, at_work->stream));
  OK(aclrtSynchronizeEvent(at_work->event));
  OK(at_work->elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT(at_work->elu.outcome() == kExpected);
  return 7;
}

int fork_at_work() {
  at_work = new AtWork;
  const pid_t child = fork();
  if (child == 0) answer(use_what_is_the_parents);
  return leave_at_work(child);
}

// The same while threads of the parent wait inside: for the event, for a callback, and, holding an executor, for room in
// a queue that is full.
int fork_while_others_wait() {
  at_work = new AtWork;
  int value = 0;
  for (int i = 0; i < 65536; ++i) OK(aclrtMemsetAsync(&value, 4, i, 4, at_work->stream));
  OK(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), at_work->other));
  std::atomic<bool> subscribed{false};
  std::thread for_event([] { OK(aclrtSynchronizeEvent(at_work->event)); });
  std::thread for_room([] { OK(at_work->elu.run(at_work->stream)); });
  std::thread for_callback([&] {
    OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), at_work->other));
    subscribed = true;
    EXPECT_CODE(107000, aclrtProcessReport(-1));
  });
  while (!subscribed) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const pid_t child = fork();
  if (child == 0) answer(use_what_is_the_parents);
  const int code = leave_at_work(child);
  OK(aclrtDestroyStream(at_work->other));
  for (std::thread* waiting : {&for_event, &for_room, &for_callback}) waiting->join();
  OK(aclrtSynchronizeStream(at_work->stream));
  return code;
}

// The engine is being started by another thread.
int fork_while_starting() {
  std::atomic<bool> begun{false};
  std::thread starter([&] {
    begun = true;
    compute();
  });
  while (!begun) std::this_thread::yield();  // on a busy machine it may come late
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const pid_t child = fork();
    if (child == 0) answer([] {
      Elu elu(kGrad, kResult);
      EXPECT_CODE(561000, elu.plan());
      EXPECT(said("the process was forked"));
    });
    EXPECT(after_fork(child) == 6);
  }
  starter.join();
  compute();
  return 7;
}

// A callback forks; the child returns from aclrtProcessReport like the parent.
int fork_in_a_callback() {
  static pid_t child = -1;
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  OK(aclrtLaunchCallback([](void*) { child = fork(); }, nullptr, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtProcessReport(-1));
  if (child == 0) answer([] { EXPECT_CODE(107000, aclrtProcessReport(1)); });
  OK(aclrtSynchronizeStream(stream));
  EXPECT(after_fork(child) == 6);
  OK(aclrtDestroyStream(stream));
  return 7;
}

// A host function forks; the child has nothing but the stream's thread and ends when the function does, with 0.
int fork_in_a_host_function() {
  static pid_t child = -1;
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtLaunchHostFunc(stream, [](void*) { child = fork(); }, nullptr));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(child > 0 && after_fork(child) == 0);
  OK(aclrtDestroyStream(stream));
  return 7;
}

// Every kind of object, made, used and destroyed.
void use_everything() {
  float value = 1;
  const int64_t one[] = {1};
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  OK(aclDestroyScalar(aclCreateScalar(&value, ACL_FLOAT)));
  OK(aclDestroyIntArray(aclCreateIntArray(one, 1)));
  OK(aclDestroyTensor(aclCreateTensor(one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr)));
  OK(aclrtCreateStream(&stream));
  OK(aclrtCreateEvent(&event));
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  Memory memory = device_memory(64);
  OK(aclrtMemsetAsync(memory.get(), 64, 1, 64, stream));
  OK(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtRecordEvent(event, stream));
  OK(aclrtProcessReport(-1));
  OK(aclrtSynchronizeEvent(event));
  memory.reset();
  OK(aclrtDestroyEvent(event));
  OK(aclrtDestroyStream(stream));
}

// Threads are anywhere in the library when the process forks.
int fork_anywhere() {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { while (!done) use_everything(); });
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) answer(use_everything);
    EXPECT(after_fork(child) == 6);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
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
  if (mode == "fork_at_work") return fork_at_work();
  if (mode == "fork_while_others_wait") return fork_while_others_wait();
  if (mode == "fork_while_starting") return fork_while_starting();
  if (mode == "fork_in_a_callback") return fork_in_a_callback();
  if (mode == "fork_in_a_host_function") return fork_in_a_host_function();
  if (mode == "fork_anywhere") return fork_anywhere();
  if (mode == "first_thread_ends") return first_thread_ends();
  return 2;
}
