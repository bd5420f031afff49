// Host callbacks: a stream hands them over, the thread that subscribed runs them inside aclrtProcessReport.
#include <pthread.h>

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
  while (wait && !report->settled && phase() != Phase::closed) mailbox->changed.wait_for(hold, std::chrono::seconds(1));
  return {};
}

}  // namespace
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
    found->set_subscriber(0);
    unsubscribe(threadId);
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

aclError aclrtProcessReport(int32_t timeoutMs) {
  return guarded("aclrtProcessReport", [&] {
    const auto mailbox = mailbox_of(static_cast<uint64_t>(pthread_self()));
    if (!mailbox) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtProcessReport: this thread has not subscribed to a stream.");
    }
    std::shared_ptr<Report> report;
    {
      WithoutInterpreterLock let_the_workers_run;
      std::unique_lock<std::mutex> hold(mailbox->mutex);
      const auto came = [&] { return !mailbox->reports.empty(); };
      if (timeoutMs < 0) {
        mailbox->changed.wait(hold, came);
      } else if (!mailbox->changed.wait_for(hold, std::chrono::milliseconds(timeoutMs), came)) {
        return fail(ACL_ERROR_FAILURE,
                    "aclrtProcessReport: nothing came within " + std::to_string(timeoutMs) + " ms.");
      }
      report = mailbox->reports.front();
      mailbox->reports.pop_front();
    }
    report->function(report->user_data);
    std::lock_guard<std::mutex> hold(mailbox->mutex);
    report->settled = true;
    mailbox->changed.notify_all();
    return 0;
  });
}

}  // extern "C"
