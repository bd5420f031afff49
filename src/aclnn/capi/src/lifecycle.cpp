#include "lifecycle.h"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cache_lines.h"
#include "callbacks.h"
#include "check.h"
#include "devices.h"
#include "memory.h"
#include "object_tables.h"
#include "stream.h"

namespace aclnn_cpu {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<Phase> current_phase{Phase::open};
SpreadCount visitors;
std::atomic<unsigned> forks{0};
std::atomic<bool> has_engine{false};
std::atomic<bool> forked_from_engine{false};
std::atomic<unsigned long long> objects_when_registered{0};

void before_fork() {
  for (unsigned shard = 0; shard < kShards; ++shard) shard_lock(shard).lock();
  memory_lock().lock();
  check_lock().lock();
  stream_registry_lock().lock();
  mailboxes_lock().lock();
}

void after_fork() {
  mailboxes_lock().unlock();
  stream_registry_lock().unlock();
  check_lock().unlock();
  memory_lock().unlock();
  for (unsigned shard = kShards; shard-- > 0;) shard_lock(shard).unlock();
}

void after_fork_in_child() {
  after_fork();
  forks.fetch_add(1);
  visitors.clear();  // whoever was inside stayed in the parent
  set_objects_free();
  forget_streams();
  forget_mailboxes();
  if (has_engine.load()) forked_from_engine.store(true);
}

// Whatever is made once is made now: a thread that is just making it when another one forks would leave it half made in
// the child, which would then wait for the rest for ever.
void make_what_is_made_once() {
  aclnn_cpu_live_objects();
  live_blocks();
  working_streams();
  check_lock();
  mailboxes_lock();
  make_devices();
}

__attribute__((constructor)) void watch_forks() {
  make_what_is_made_once();
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

int read_load_count(dl_phdr_info* info, size_t, void* count) {
  *static_cast<unsigned long long*>(count) = info->dlpi_adds;
  return 1;
}

// What exit() calls. If someone is still inside a kernel after the time limit, the destructors of its libraries must not
// run under it: the process then ends here, with its code and its output.
void leave(int code, void*) {
  aclnn_cpu_close_engine();
  if (visitors.total() == 0) return;
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

Phase phase() { return current_phase.load(std::memory_order_acquire); }

Outcome operators_are_taken() {
  if (forked_from_engine.load(std::memory_order_relaxed)) {
    return {ACLNN_ERR_INNER, "the process was forked after an operator was called; operators answer only in the parent."};
  }
  if (phase() != Phase::open) return {ACLNN_ERR_INNER, "the process is exiting; operators are no longer taken."};
  return {};
}

extern "C" void aclnn_cpu_close_engine() {
  Phase expected = Phase::open;
  if (!current_phase.compare_exchange_strong(expected, Phase::draining)) return;
  const auto deadline = Clock::now() + kExitLimit;
  const long left = drain_streams(deadline);
  if (left > 0) {
    say("the process exits with " + std::to_string(left) + (left == 1 ? " job" : " jobs") + " left on its streams after " +
        std::to_string(kExitLimit.count()) + " seconds; " + (left == 1 ? "it is" : "they are") + " dropped.");
  }
  current_phase.store(Phase::closed);
  while (visitors.total() > 0 && Clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void register_exit_hook() {
  unsigned long long loaded = 0;
  dl_iterate_phdr(read_load_count, &loaded);
  if (objects_when_registered.exchange(loaded) != loaded) on_exit(leave, nullptr);
}

void rest() {
  for (;;) pause();
}

unsigned fork_count() { return forks.load(std::memory_order_relaxed); }

void engine_begins() { has_engine.store(true); }

void engine_failed() { has_engine.store(false); }

Visit::Visit() {
  visitors.add(shard_of_this_thread(), 1);
  admitted_ = phase() != Phase::closed && !forked_from_engine.load(std::memory_order_relaxed);
  if (!admitted_) visitors.add(shard_of_this_thread(), -1);
}

Visit::~Visit() {
  if (admitted_) visitors.add(shard_of_this_thread(), -1);
}

}  // namespace aclnn_cpu
