// The public functions of streams and events.
#include "acl/acl.h"
#include "callbacks.h"
#include "devices.h"
#include "stream.h"

using namespace aclnn_cpu;

namespace {

using Milliseconds = std::chrono::duration<float, std::milli>;

int make_stream(const char* function, aclrtStream* stream, void* call_site) {
  return guarded(function, [&] {
    if (stream == nullptr) return fail_null(function, "stream");
    *stream = streams().insert(std::make_shared<Stream>(device_in_use(function)), call_site);
    return 0;
  });
}

int make_event(const char* function, aclrtEvent* event, void* call_site) {
  return guarded(function, [&] {
    if (event == nullptr) return fail_null(function, "event");
    *event = events().insert(std::make_shared<Event>(), call_site);
    return 0;
  });
}

std::shared_ptr<Event> find_event(const void* handle, const char* function, const char* argument = "event") {
  std::shared_ptr<Event> found;
  if (handle == nullptr) {
    fail_null(function, argument);
  } else if (!events().with(handle, [&](const std::shared_ptr<Event>& event) { found = event; })) {
    fail_not_live(function, argument, "aclrtEvent", handle, ACL_ERROR_INVALID_PARAM);
  } else if (found->is_orphan()) {
    fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": " + argument +
                                      " was made before a fork; what it waits for stayed in the parent.");
    found = nullptr;
  }
  return found;
}

// Destroying null is an error for these two; destroying twice is not.
template <class Object>
int take(Table<Object>& table, const void* handle, const char* function, const char* argument, Object* taken) {
  if (handle == nullptr) return fail_null(function, argument);
  if (table.take(handle, taken) || table.standing(handle) == Standing::gone) return 0;
  return fail_not_live(function, argument, table.type(), handle, ACL_ERROR_INVALID_PARAM);
}

int synchronize(const char* function, aclrtStream handle, Deadline deadline, int milliseconds) {
  return guarded(function, [&] {
    if (const int refused = refuse_to_wait(function)) return refused;
    const auto stream = find_stream(handle, function, ACL_ERROR_INVALID_PARAM);
    if (!stream) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    Outcome outcome;
    if (stream->synchronize(deadline, &outcome)) return fail(outcome);
    return fail(ACL_ERROR_FAILURE, std::string(function) + ": the stream still has work after " +
                                       std::to_string(milliseconds) + " ms.");
  });
}

// Finishes what is queued: others may wait for events among it, and memory of the program goes with it.
int destroy_stream(const char* function, aclrtStream stream) {
  return guarded(function, [&] {
    if (const int refused = refuse_to_wait(function)) return refused;
    std::shared_ptr<Stream> taken;
    const int code = take(streams(), stream, function, "stream", &taken);
    if (!taken) return code;
    if (taken->is_orphan()) return 0;
    const bool would_wait_for_itself = taken->subscriber() == static_cast<uint64_t>(pthread_self());
    if (would_wait_for_itself) end_subscription(*taken);
    const Outcome outcome = taken->end();
    end_subscription(*taken);
    return fail(outcome);
  });
}

// Writes whether the latest recording was reached, in the numbers of one of the two enumerations.
template <class Status>
int query_event(const char* function, aclrtEvent event, Status* status, Status complete, Status not_ready) {
  return guarded(function, [&] {
    if (status == nullptr) return fail_null(function, "status");
    const auto found = find_event(event, function);
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    *status = found->completed_at(nullptr) ? complete : not_ready;
    return 0;
  });
}

}  // namespace

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) {
  return make_stream("aclrtCreateStream", stream, __builtin_return_address(0));
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
  return make_stream("aclrtCreateStreamWithConfig", stream, __builtin_return_address(0));
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy_stream("aclrtDestroyStream", stream); }

aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy_stream("aclrtDestroyStreamForce", stream); }

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return synchronize("aclrtSynchronizeStream", stream, kForEver, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeoutMs) {
  const auto deadline =
      timeoutMs < 0 ? kForEver : std::chrono::steady_clock::now() + std::chrono::milliseconds(timeoutMs);
  return synchronize("aclrtSynchronizeStreamWithTimeout", stream, deadline, timeoutMs);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guarded("aclrtStreamQuery", [&] {
    if (status == nullptr) return fail_null("aclrtStreamQuery", "status");
    const auto found = find_stream(stream, "aclrtStreamQuery", ACL_ERROR_INVALID_PARAM);
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    *status = found->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return 0;
  });
}

aclError aclrtSynchronizeDevice() {
  return guarded("aclrtSynchronizeDevice", [&] {
    if (const int refused = refuse_to_wait("aclrtSynchronizeDevice")) return refused;
    Outcome first;
    for (const auto& stream : working_streams(device_in_use("aclrtSynchronizeDevice"))) {
      Outcome outcome;
      stream->synchronize(kForEver, &outcome);
      if (first.ok()) first = outcome;
    }
    return fail(first);
  });
}

aclError aclrtCreateEvent(aclrtEvent* event) {
  return make_event("aclrtCreateEvent", event, __builtin_return_address(0));
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) {
  return make_event("aclrtCreateEventWithFlag", event, __builtin_return_address(0));
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t) {
  return make_event("aclrtCreateEventExWithFlag", event, __builtin_return_address(0));
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return guarded("aclrtDestroyEvent", [&] {
    std::shared_ptr<Event> taken;
    return take(events(), event, "aclrtDestroyEvent", "event", &taken);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return guarded("aclrtRecordEvent", [&] {
    const auto found = find_event(event, "aclrtRecordEvent");
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    const auto where = find_stream(stream, "aclrtRecordEvent", ACL_ERROR_INVALID_PARAM);
    if (!where) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    const uint64_t recording = found->announce();
    Outcome outcome = {ACL_ERROR_BAD_ALLOC, ""};
    try {
      outcome = where->submit([found, recording] {
        found->complete(recording);
        return Outcome{};
      }, By::anyone);
    } catch (const std::bad_alloc&) {
    }
    if (!outcome.ok()) found->complete(recording);  // nobody else will, and someone may wait
    return fail(outcome);
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return guarded("aclrtStreamWaitEvent", [&] {
    const auto found = find_event(event, "aclrtStreamWaitEvent");
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    const auto where = find_stream(stream, "aclrtStreamWaitEvent", ACL_ERROR_INVALID_PARAM);
    if (!where) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    const uint64_t recording = found->announced();  // what is recorded later does not count
    return fail(where->submit([found, recording] {
      found->wait_for(recording);
      return Outcome{};
    }));
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return guarded("aclrtSynchronizeEvent", [&] {
    if (const int refused = refuse_to_wait("aclrtSynchronizeEvent")) return refused;
    const auto found = find_event(event, "aclrtSynchronizeEvent");
    if (!found) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    found->wait_for(found->announced());
    return 0;
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return query_event("aclrtQueryEvent", event, status, ACL_EVENT_STATUS_COMPLETE, ACL_EVENT_STATUS_NOT_READY);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return query_event("aclrtQueryEventStatus", event, status, ACL_EVENT_RECORDED_STATUS_COMPLETE,
                     ACL_EVENT_RECORDED_STATUS_NOT_READY);
}

aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent start, aclrtEvent end) {
  return guarded("aclrtEventElapsedTime", [&] {
    if (milliseconds == nullptr) return fail_null("aclrtEventElapsedTime", "milliseconds");
    const auto first = find_event(start, "aclrtEventElapsedTime", "start");
    const auto last = find_event(end, "aclrtEventElapsedTime", "end");
    if (!first || !last) return static_cast<int>(ACL_ERROR_INVALID_PARAM);
    Deadline began, ended;
    if (!first->completed_at(&began) || !last->completed_at(&ended)) {
      return fail(ACL_ERROR_RT_PARAM_INVALID,
                  "aclrtEventElapsedTime: both events must have been recorded and reached; synchronize first.");
    }
    *milliseconds = Milliseconds(ended - began).count();
    return 0;
  });
}

}  // extern "C"
