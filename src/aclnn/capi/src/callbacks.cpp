// Host callbacks: a stream hands them over, the thread that subscribed runs them inside aclrtProcessReport. Host functions:
// a stream runs them itself.
#include "callbacks.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "acl/acl.h"
#include "interpreter.h"
#include "lifecycle.h"
#include "stream.h"

namespace aclnn_cpu {
namespace {

// One callback on its way. `settled`: it was run, or nobody will.
struct Report {
  aclrtCallback function;
  void* user_data;
  bool settled = false;
};

// What waits for one thread. Kept by whoever uses it, so that unsubscribing never pulls it away.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Report>> reports;
  int subscriptions = 0;
  bool is_closed = false;  // nobody subscribes any more: what comes later is dropped
};

struct Mailboxes {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Mailbox>> by_thread;
};

constexpr std::chrono::seconds kGlance(1);  // between looks at whether the process exits

Mailboxes& mailboxes() {
  static auto* made = new Mailboxes;
  return *made;
}

std::shared_ptr<Mailbox> mailbox_of(uint64_t thread) {
  std::lock_guard<std::mutex> hold(mailboxes().mutex);
  const auto found = mailboxes().by_thread.find(thread);
  return found == mailboxes().by_thread.end() ? nullptr : found->second;
}

void subscribe(uint64_t thread) {
  std::lock_guard<std::mutex> hold(mailboxes().mutex);
  auto& mailbox = mailboxes().by_thread[thread];
  if (!mailbox) mailbox = std::make_shared<Mailbox>();
  ++mailbox->subscriptions;
}

void unsubscribe(uint64_t thread) {
  std::lock_guard<std::mutex> hold(mailboxes().mutex);
  const auto found = mailboxes().by_thread.find(thread);
  if (found == mailboxes().by_thread.end() || --found->second->subscriptions > 0) return;
  const auto mailbox = found->second;
  mailboxes().by_thread.erase(found);
  std::lock_guard<std::mutex> hold_box(mailbox->mutex);
  mailbox->is_closed = true;
  for (const auto& report : mailbox->reports) report->settled = true;
  mailbox->reports.clear();
  mailbox->changed.notify_all();
}

Outcome deliver(const std::shared_ptr<Mailbox>& mailbox, const std::shared_ptr<Report>& report, bool wait) {
  std::unique_lock<std::mutex> hold(mailbox->mutex);
  if (mailbox->is_closed) return {};
  mailbox->reports.push_back(report);
  mailbox->changed.notify_all();
  while (wait && !report->settled && phase() != Phase::closed) mailbox->changed.wait_for(hold, kGlance);
  return {};
}

// Waits for a callback; null, with the reason, when none comes.
std::shared_ptr<Report> collect(Mailbox& mailbox, int32_t timeout, Outcome* reason) {
  WithoutInterpreterLock let_the_workers_run;
  const auto began = std::chrono::steady_clock::now();
  const auto deadline = timeout < 0 ? kForEver : began + std::chrono::milliseconds(timeout);
  std::unique_lock<std::mutex> hold(mailbox.mutex);
  for (;;) {
    if (!mailbox.reports.empty()) {
      const auto report = mailbox.reports.front();
      mailbox.reports.pop_front();
      return report;
    }
    const auto now = std::chrono::steady_clock::now();
    if (mailbox.is_closed) {
      *reason = {ACL_ERROR_RT_PARAM_INVALID, "this thread was unsubscribed while it waited; nothing will come any more."};
    } else if (phase() == Phase::closed) {
      *reason = {ACLNN_ERR_INNER, "the process is exiting; nothing will come any more."};
    } else if (now >= deadline) {
      *reason = {ACL_ERROR_FAILURE, "nothing came within " + std::to_string(timeout) + " ms."};
    }
    if (!reason->ok()) return nullptr;
    mailbox.changed.wait_until(hold, std::min(deadline, now + kGlance));
  }
}

// Lets the stream go on, however the callback ends. In the child of a callback that forked there is no stream to tell.
class Settling {
 public:
  Settling(Mailbox& mailbox, Report& report) : mailbox_(mailbox), report_(report) {}
  ~Settling() {
    if (mark_.is_orphan()) return;
    std::lock_guard<std::mutex> hold(mailbox_.mutex);
    report_.settled = true;
    mailbox_.changed.notify_all();
  }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;

 private:
  Mailbox& mailbox_;
  Report& report_;
  const ForkMark mark_;
};

thread_local bool is_inside_host_function = false;

struct InsideHostFunction {
  InsideHostFunction() { is_inside_host_function = true; }
  ~InsideHostFunction() { is_inside_host_function = false; }
};

Outcome threw(const std::string& what) {
  return {ACL_ERROR_INTERNAL_ERROR, "aclrtLaunchHostFunc: the function threw " + what + "."};
}

Outcome call_on_worker(aclrtHostFunc function, void* user_data) {
  const InsideHostFunction inside;
  const ForkMark mark;
  Outcome outcome;
  try {
    function(user_data);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& error) {
    outcome = threw(std::string("an exception: ") + error.what());
  } catch (...) {
    outcome = threw("something that is no std::exception");
  }
  if (mark.is_orphan()) _exit(0);  // it forked: the child has this thread alone, and it ends here
  return outcome;
}

}  // namespace

bool inside_host_function() { return is_inside_host_function; }

int refuse_to_wait(const char* function) {
  if (!is_inside_host_function) return 0;
  return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              std::string(function) + ": a host function cannot wait; the stream that runs it waits for its end.");
}

bool runs_callbacks(uint64_t thread) { return mailbox_of(thread) != nullptr; }

void end_subscription(Stream& stream) {
  const uint64_t thread = stream.subscriber();
  if (thread == 0) return;
  stream.set_subscriber(0);
  unsubscribe(thread);
}

std::mutex& mailboxes_lock() { return mailboxes().mutex; }

void forget_mailboxes() { mailboxes().by_thread.clear(); }

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" {

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded("aclrtSubscribeReport", [&] {
    const auto found = find_stream(stream, "aclrtSubscribeReport", ACL_ERROR_INVALID_PARAM);
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    if (found->subscriber() != 0) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtSubscribeReport: the stream already has a subscriber.");
    }
    subscribe(threadId);
    found->set_subscriber(threadId);
    return 0;
  });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded("aclrtUnSubscribeReport", [&] {
    const auto found = find_stream(stream, "aclrtUnSubscribeReport", ACL_ERROR_INVALID_PARAM);
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    if (threadId == 0 || found->subscriber() != threadId) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtUnSubscribeReport: this thread has not subscribed to the stream.");
    }
    end_subscription(*found);
    return 0;
  });
}

aclError aclrtLaunchCallback(aclrtCallback function, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  return guarded("aclrtLaunchCallback", [&] {
    if (function == nullptr) return fail_null("aclrtLaunchCallback", "function");
    const auto found = find_stream(stream, "aclrtLaunchCallback", ACL_ERROR_INVALID_PARAM);
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    const auto mailbox = mailbox_of(found->subscriber());
    if (!mailbox) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "aclrtLaunchCallback: no thread has subscribed to the stream; call aclrtSubscribeReport first.");
    }
    auto report = std::make_shared<Report>(Report{function, userData});
    const bool wait = blockType == ACL_CALLBACK_BLOCK;
    return fail(found->submit([=] { return deliver(mailbox, report, wait); }));
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void* userData) {
  return guarded("aclrtLaunchHostFunc", [&] {
    if (function == nullptr) return fail_null("aclrtLaunchHostFunc", "function");
    const auto found = find_stream(stream, "aclrtLaunchHostFunc", ACL_ERROR_INVALID_PARAM);
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    return fail(found->submit([=] { return call_on_worker(function, userData); }));
  });
}

aclError aclrtProcessReport(int32_t timeoutMs) {
  return guarded("aclrtProcessReport", [&] {
    const auto mailbox = mailbox_of(static_cast<uint64_t>(pthread_self()));
    if (!mailbox) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtProcessReport: this thread has not subscribed to a stream.");
    }
    Outcome reason;
    const auto report = collect(*mailbox, timeoutMs, &reason);
    if (!report) return fail(reason.code, "aclrtProcessReport: " + reason.sentence);
    const Settling settling(*mailbox, *report);
    report->function(report->user_data);
    return 0;
  });
}

}  // extern "C"
