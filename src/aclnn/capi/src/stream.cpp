#include "stream.h"

#include <algorithm>
#include <utility>

#include "callbacks.h"
#include "check.h"
#include "devices.h"
#include "interpreter.h"
#include "lifecycle.h"

namespace aclnn_cpu {
namespace {

SpreadCount jobs_in_flight;
std::mutex lock_of_the_registry;

// Streams that have a worker, by weak reference: the table or the job queue keeps them alive.
std::vector<std::weak_ptr<Stream>>& registry() {
  static auto* made = new std::vector<std::weak_ptr<Stream>>;
  return *made;
}

void enter_in_registry(const std::shared_ptr<Stream>& stream) {
  std::lock_guard<std::mutex> hold(stream_registry_lock());
  auto& all = registry();
  for (auto& entry : all) {
    if (entry.expired() || entry.lock() == stream) {  // it is here already if it got no worker the last time
      entry = stream;
      return;
    }
  }
  all.push_back(stream);
}

constexpr std::chrono::microseconds kAwake(30);

// A thread of the program may have a tiny stack, on which kernels and Python do not fit.
constexpr uintptr_t kRoom = 512 * 1024;

uintptr_t lowest_of_stack() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return UINTPTR_MAX;
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(lowest);
}

bool has_room_on_stack() {
  static thread_local const uintptr_t lowest = lowest_of_stack();
  const uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > lowest && here - lowest > kRoom;
}

// No exception leaves a worker; an outcome without a sentence is one that there was no memory for. Not noexcept: when
// Python ends, it ends this thread inside the job, and that must pass through here.
Outcome outcome_of(const Job& job) {
  try {
    return job();
  } catch (const std::bad_alloc&) {
    return {ACL_ERROR_BAD_ALLOC, ""};
  } catch (const std::exception& error) {
    try {
      return {ACL_ERROR_INTERNAL_ERROR, std::string("work on a stream failed: ") + error.what() + "."};
    } catch (const std::exception&) {
      return {ACL_ERROR_INTERNAL_ERROR, ""};
    }
  }
}

}  // namespace

Outcome Stream::submit(Job job, By by) {
  WithoutInterpreterLock let_the_worker_make_room;
  std::unique_lock<std::mutex> hold(mutex_);
  if (waiting_ >= kMostQueued && may_wait()) wait_for_room(hold);
  Outcome outcome = refusal();
  if (outcome.ok() && !has_worker_) outcome = start();
  if (!outcome.ok()) return outcome;
  const bool at_once = by == By::bringer && jobs_.empty() && !checking();  // who checks wants to see work that waits
  enqueue({std::move(job), false, by});
  if (at_once && may_help()) help(hold);
  else wake_worker();
  return outcome;
}

void Stream::follow(Job job) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (jobs_.empty() && !busy_) return;
  enqueue({std::move(job), true, By::anyone});
  wake_worker();
}

Outcome Stream::refusal() const {
  if (phase() != Phase::open) return {ACLNN_ERR_INNER, "the process is exiting; streams take no more work."};
  if (ended_) return {ACL_ERROR_INVALID_PARAM, "the stream was destroyed."};
  return {};
}

bool Stream::may_wait() const {
  return !inside_host_function() && !runs_callbacks(static_cast<uint64_t>(pthread_self()));
}

void Stream::wait_for_room(std::unique_lock<std::mutex>& hold) {
  while (waiting_ >= kMostQueued && refusal().ok()) room_came_.wait_for(hold, std::chrono::seconds(1));
}

// Streams of one thread may be used by several: each counts elsewhere than the one before.
unsigned Stream::next_side() {
  static std::atomic<unsigned> made{0};
  return made.fetch_add(1, std::memory_order_relaxed);
}

Outcome Stream::start() {
  auto self = std::make_unique<std::shared_ptr<Stream>>(shared_from_this());
  enter_in_registry(*self);
  if (pthread_create(&worker_, nullptr, start_worker, self.get()) != 0) {
    return {ACL_ERROR_INTERNAL_ERROR, "the system has no thread left for a stream."};
  }
  self.release();
  pthread_detach(worker_);
  has_worker_ = true;
  return {};
}

void Stream::enqueue(Queued queued) {
  const bool counts = !queued.is_ours;
  jobs_.push_back(std::move(queued));
  if (counts) {
    ++waiting_;
    jobs_in_flight.add(side_, 1);
  }
  unfinished_.fetch_add(1, std::memory_order_relaxed);
}

void Stream::wake_worker() {
  if (worker_waits_) work_came_.notify_one();
}

Stream::Queued Stream::take() {
  Queued next = std::move(jobs_.front());
  jobs_.pop_front();
  if (!next.is_ours && waiting_-- == kMostQueued) room_came_.notify_all();
  return next;
}

bool Stream::synchronize(Deadline deadline, Outcome* outcome) {
  *outcome = {};
  WithoutInterpreterLock let_the_workers_run;
  std::unique_lock<std::mutex> hold(mutex_);
  const auto done = [&] { return jobs_.empty() && !busy_; };
  bool has_waited_awake = false;
  // Once the engine is closed a worker may rest with work in hand; waits then end soon, and with an error.
  while (!done()) {
    if (phase() == Phase::closed) {
      *outcome = {ACLNN_ERR_INNER, "the process is exiting; the work of this stream was dropped."};
      return true;
    }
    if (deadline == kForEver && may_help()) {
      help(hold);
      continue;
    }
    if (!std::exchange(has_waited_awake, true)) {
      wait_awake(hold);
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    work_done_.wait_until(hold, std::min(deadline, now + std::chrono::seconds(1)));
  }
  std::swap(*outcome, error_);
  return true;
}

bool Stream::idle() {
  std::lock_guard<std::mutex> hold(mutex_);
  return jobs_.empty() && !busy_;
}

Outcome Stream::end() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    ended_ = true;
    work_came_.notify_one();
    room_came_.notify_all();
  }
  Outcome outcome;
  synchronize(kForEver, &outcome);
  return outcome;
}

uint64_t Stream::subscriber() {
  std::lock_guard<std::mutex> hold(mutex_);
  return subscriber_;
}

void Stream::set_subscriber(uint64_t thread) {
  std::lock_guard<std::mutex> hold(mutex_);
  subscriber_ = thread;
}

void* Stream::start_worker(void* stream) {
  std::unique_ptr<std::shared_ptr<Stream>> self(static_cast<std::shared_ptr<Stream>*>(stream));
  const DefaultFloats floats;
  (*self)->work();
  return nullptr;
}

void Stream::work() {
  std::unique_lock<std::mutex> hold(mutex_);
  for (;;) {
    worker_waits_ = true;
    work_came_.wait(hold, [&] { return jobs_.empty() ? ended_ : !busy_; });
    worker_waits_ = false;
    if (jobs_.empty()) return;
    if (phase() == Phase::closed) {
      hold.unlock();
      rest();
    }
    run_next(hold);
  }
}

// One job, on the calling thread: one at a time, in order.
void Stream::run_next(std::unique_lock<std::mutex>& hold) {
  busy_ = true;
  Queued next = take();
  hold.unlock();
  Outcome outcome = outcome_of(next.job);
  next.job = nullptr;  // what the job holds is free before anyone is told that it is done
  hold.lock();
  if (error_.ok() && !outcome.ok()) error_ = std::move(outcome);
  busy_ = false;
  if (!next.is_ours) jobs_in_flight.add(side_, -1);
  unfinished_.fetch_sub(1, std::memory_order_release);
  if (jobs_.empty()) work_done_.notify_all();
}

bool Stream::may_help() const {
  return !busy_ && !jobs_.empty() && jobs_.front().by != By::worker && !is_thread_of_python() && has_room_on_stack();
}

// Does the worker's work as far as it may; whoever cancels this thread waits for the job, or nobody would end it.
void Stream::help(std::unique_lock<std::mutex>& hold) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  while (phase() != Phase::closed && may_help()) run_next(hold);
  if (ended_ || !jobs_.empty()) wake_worker();  // it may have slept on meanwhile
  pthread_setcancelstate(before, nullptr);
}

// Small work is done before a sleeping thread would be awake again.
void Stream::wait_awake(std::unique_lock<std::mutex>& hold) {
  hold.unlock();
  const auto enough = std::chrono::steady_clock::now() + kAwake;
  while (unfinished_.load(std::memory_order_acquire) > 0 && std::chrono::steady_clock::now() < enough) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  hold.lock();
}

std::mutex& stream_registry_lock() { return lock_of_the_registry; }

std::shared_ptr<Stream> find_stream(const void* handle, const char* function, int code) {
  if (handle == nullptr) return default_stream();
  std::shared_ptr<Stream> found;
  streams().with(handle, [&](const std::shared_ptr<Stream>& stream) { found = stream; });
  if (!found) {
    fail_not_live(function, "stream", "aclrtStream", handle, code);
  } else if (found->is_orphan()) {
    fail(code, std::string(function) + ": stream was made before a fork; its worker stayed in the parent.");
    found = nullptr;
  }
  return found;
}

std::vector<std::shared_ptr<Stream>> working_streams(int device) {
  std::lock_guard<std::mutex> hold(stream_registry_lock());
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& entry : registry()) {
    auto stream = entry.lock();
    if (stream && (device < 0 || stream->device() == device)) found.push_back(std::move(stream));
  }
  return found;
}

void forget_streams() {
  registry().clear();
  jobs_in_flight.clear();
}

long work_in_flight() { return jobs_in_flight.total(); }

long drain_streams(Deadline deadline) {
  WithoutInterpreterLock let_the_workers_run;
  while (work_in_flight() > 0 && std::chrono::steady_clock::now() < deadline) {
    timespec pause = {0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return work_in_flight();
}

uint64_t Event::announce() {
  std::lock_guard<std::mutex> hold(mutex_);
  return ++announced_;
}

void Event::complete(uint64_t recording) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (recording > completed_) {
    completed_ = recording;
    when_ = std::chrono::steady_clock::now();
  }
  reached_.notify_all();
}

uint64_t Event::announced() {
  std::lock_guard<std::mutex> hold(mutex_);
  return announced_;
}

void Event::wait_for(uint64_t recording) {
  WithoutInterpreterLock let_the_workers_run;
  std::unique_lock<std::mutex> hold(mutex_);
  while (completed_ < recording && phase() != Phase::closed) reached_.wait_for(hold, std::chrono::seconds(1));
}

bool Event::completed_at(Deadline* when) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (announced_ == 0 || completed_ < announced_) return false;
  if (when != nullptr) *when = when_;
  return true;
}

}  // namespace aclnn_cpu
