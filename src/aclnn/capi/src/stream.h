// Streams: a queue of jobs and a worker of its own each. Events: points in a stream that others can wait for.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cache_lines.h"
#include "engine.h"
#include "errors.h"
#include "lifecycle.h"
#include "object_tables.h"

namespace aclnn_cpu {

using Job = std::function<Outcome()>;
using Deadline = std::chrono::steady_clock::time_point;

// So many jobs wait on one stream; whoever brings one more waits until there is room.
constexpr size_t kMostQueued = 65536;

class alignas(kLine) Stream : public ForkMark, public std::enable_shared_from_this<Stream> {
 public:
  explicit Stream(int device) : device_(device) {}

  int device() const { return device_; }

  // Puts a job at the end of the queue, or does it at once; the first one starts the worker. Waits while the queue is
  // full, except in the worker itself and in threads that run callbacks: the stream may wait for them.
  Outcome submit(Job job, By by = By::worker);

  // Puts a job of ours behind what is queued, even when the queue is full or the stream ends; nothing if it is idle.
  void follow(Job job);

  // Waits until all work is done and answers the first error since the last time, once. False: not by the deadline.
  // Without one, the thread that waits does what it may itself: waking the worker would take longer than small work.
  bool synchronize(Deadline deadline, Outcome* outcome);

  bool idle();

  // Takes no more work, finishes what is queued, lets the worker go. Answers like synchronize.
  Outcome end();

  // The thread that runs this stream's host callbacks; 0 when there is none.
  uint64_t subscriber();
  void set_subscriber(uint64_t thread);

 private:
  struct Queued {
    Job job;
    bool is_ours;  // does not count
    By by;
  };

  static unsigned next_side();
  static void* start_worker(void* stream);
  Outcome start();
  void wait_for_room(std::unique_lock<std::mutex>& hold);
  bool may_wait() const;
  Outcome refusal() const;
  void enqueue(Queued queued);
  void wake_worker();
  void work();
  Queued take();
  void run_next(std::unique_lock<std::mutex>& hold);
  bool may_help() const;
  void help(std::unique_lock<std::mutex>& hold);
  void wait_awake(std::unique_lock<std::mutex>& hold);

  const int device_;
  const unsigned side_ = next_side();  // where its jobs are counted
  std::mutex mutex_;
  std::condition_variable work_came_, work_done_, room_came_;
  std::deque<Queued> jobs_;
  size_t waiting_ = 0;  // jobs of the program in the queue
  pthread_t worker_{};
  std::atomic<size_t> unfinished_{0};  // jobs queued and running: those who wait awake look here, without the lock
  bool has_worker_ = false, worker_waits_ = false, busy_ = false, ended_ = false;
  Outcome error_;
  uint64_t subscriber_ = 0;
};

constexpr Deadline kForEver = Deadline::max();

// The stream of a handle: null is the default stream of the current device. Null result: the handle is not live or from
// before a fork, and `function` has failed with `code`.
std::shared_ptr<Stream> find_stream(const void* handle, const char* function, int code);

// Every stream that has had work, for those who wait for all of them (of one device, if it is not negative).
std::vector<std::shared_ptr<Stream>> working_streams(int device = -1);
std::mutex& stream_registry_lock();

// How many jobs are queued or running, on all streams.
long work_in_flight();

// In the child of a fork: there is no work any more, and nobody to do it.
void forget_streams();

// Waits until every stream is idle, or the deadline has come; how many jobs are left.
long drain_streams(Deadline deadline);

class Event : public ForkMark {
 public:
  // The number of a new recording, whose completion is still to come.
  uint64_t announce();
  void complete(uint64_t recording);
  uint64_t announced();
  void wait_for(uint64_t recording);
  bool completed_at(Deadline* when);  // recorded, and reached

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  uint64_t announced_ = 0, completed_ = 0;
  Deadline when_{};
};

}  // namespace aclnn_cpu
