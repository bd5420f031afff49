// `cold FILE THREADS MODE FIRST`: a fresh process whose first calls come from several threads at once. Every thread makes
// all calls of the file, beginning with the same one, on a stream and on memory of its own. Prints what each call wrote
// and answers 0, or prints what was refused.
//
// MODE: plain; fork (the process forks while its first calls are made; children get answers); odd (another rounding is
// set before anything else, and on x86 subnormals are flushed).
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "call.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

std::mutex printing;
std::atomic<int> ready{0}, failures{0};

void report(size_t number, const std::string& text) {
  std::lock_guard<std::mutex> hold(printing);
  std::printf("%zu %s\n", number, text.c_str());
}

void fail(const Call& call, const char* where, int code) {
  ++failures;
  std::lock_guard<std::mutex> hold(printing);
  std::printf("! %s %s %d %s\n", call.op->name, where, code, aclGetRecentErrMsg());
}

void make(Call& call, size_t number, aclrtStream stream) {
  call.create();
  int code = call.plan();
  if (code != 0) return fail(call, "phase 1", code);
  code = call.run(stream);
  if (code != 0) return fail(call, "phase 2", code);
  code = aclrtSynchronizeStream(stream);
  if (code != 0) return fail(call, "synchronize", code);
  call.destroy();
  report(number, written(call));
}

void first_calls(const char* file, size_t first, int threads) {
  std::vector<Call> calls = read_calls(file);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  ++ready;
  while (ready < threads) std::this_thread::yield();
  for (size_t i = 0; i < calls.size(); ++i) {
    const size_t number = (i + first) % calls.size();
    make(calls[number], number, stream);
  }
  aclrtDestroyStream(stream);
}

// A child computes, or says that it cannot; it may not hang.
[[noreturn]] void child(const char* file) {
  alarm(60);
  std::vector<Call> calls = read_calls(file);
  calls[0].create();
  const int code = calls[0].plan();
  if (code != 561000 || std::strstr(aclGetRecentErrMsg(), "was forked") == nullptr) _exit(1);
  void* memory = nullptr;
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) != 0 || aclrtFree(memory) != 0) _exit(2);
  _exit(0);
}

void fork_now_and_then(const char* file, int threads) {
  while (ready < threads) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    const pid_t made = fork();
    if (made == 0) child(file);
    int status = 0;
    waitpid(made, &status, 0);
    if (status == 0) continue;
    ++failures;
    report(0, "! a child ended with status " + std::to_string(status));
  }
}

void make_floats_odd() {
  std::fesetround(FE_UPWARD);
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

}  // namespace

int main(int, char** arguments) {
  const char* file = arguments[1];
  const int threads = std::atoi(arguments[2]);
  const std::string mode = arguments[3];
  const size_t first = std::strtoul(arguments[4], nullptr, 10);
  if (mode == "odd") make_floats_odd();
  std::vector<std::thread> started;
  for (int i = 0; i < threads; ++i) started.emplace_back(first_calls, file, first, threads);
  if (mode == "fork") fork_now_and_then(file, threads);
  for (std::thread& thread : started) thread.join();
  return failures == 0 ? 0 : 1;
}
