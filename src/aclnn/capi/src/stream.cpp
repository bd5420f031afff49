#include "stream.h"

#include <algorithm>
#include <atomic>

#include "callbacks.h"
#include "devices.h"
#include "interpreter.h"
#include "lifecycle.h"

namespace aclnn_cpu {
namespace {

std::atomic<long> jobs_in_flight{0};
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

Outcome Stream::submit(Job job) {
  WithoutInterpreterLock let_the_worker_make_room;
  std::unique_lock<std::mutex> hold(mutex_);
  if (waiting_ >= kMostQueued && may_wait()) wait_for_room(hold);
  Outcome outcome = refusal();
  if (outcome.ok() && !has_worker_) outcome = start();
  if (outcome.ok()) enqueue({std::move(job), false});
  return outcome;
}

void Stream::follow(Job job) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!jobs_.empty() || busy_) enqueue({std::move(job), true});
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
    jobs_in_flight.fetch_add(1);
  }
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
  // Once the doors are closed a worker may rest with work in hand; waits then end soon, and with an error.
  while (!done()) {
    if (phase() == Phase::closed) {
      *outcome = {ACLNN_ERR_INNER, "the process is exiting; the work of this stream was dropped."};
      return true;
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
    work_came_.wait(hold, [&] { return !jobs_.empty() || ended_; });
    worker_waits_ = false;
    if (jobs_.empty()) return;
    busy_ = true;
    bool counts = true;
    {
      Queued next = take();
      counts = !next.is_ours;
      hold.unlock();
      if (phase() == Phase::closed) rest();
      Outcome outcome = outcome_of(next.job);
      next.job = nullptr;  // what the job holds is free before anyone is told that it is done
      hold.lock();
      if (error_.ok() && !outcome.ok()) error_ = std::move(outcome);
    }
    busy_ = false;
    if (counts) jobs_in_flight.fetch_sub(1);
    if (jobs_.empty()) work_done_.notify_all();
  }
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
  jobs_in_flight.store(0);
}

long work_in_flight() { return jobs_in_flight.load(); }

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
