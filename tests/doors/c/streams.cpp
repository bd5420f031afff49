// Devices, contexts, streams, events, callbacks.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "suite.h"

namespace {

void devices_and_contexts() {
  int32_t device = -1;
  EXPECT_CODE(107002, aclrtGetDevice(&device));
  uint32_t count = 0;
  OK(aclrtGetDeviceCount(&count));
  EXPECT(count >= 2);
  EXPECT_CODE(107001, aclrtSetDevice(-1));
  EXPECT_CODE(107001, aclrtSetDevice(static_cast<int32_t>(count)));
  EXPECT(said("deviceId is"));
  OK(aclrtSetDevice(1));
  OK(aclrtGetDevice(&device));
  EXPECT(device == 1);
  aclrtContext of_device = nullptr, own = nullptr, now = nullptr;
  OK(aclrtGetCurrentContext(&of_device));
  OK(aclrtCreateContext(&own, 0));
  OK(aclrtGetDevice(&device));
  EXPECT(device == 0);
  OK(aclrtSetCurrentContext(of_device));
  OK(aclrtGetDevice(&device));
  OK(aclrtGetCurrentContext(&now));
  EXPECT(device == 1 && now == of_device);
  std::thread([&] { OK(aclrtSetCurrentContext(own)); OK(aclrtDestroyContext(own)); }).join();
  EXPECT_CODE(100000, aclrtSetCurrentContext(own));
  EXPECT_CODE(100000, aclrtDestroyContext(of_device));  // it is the device's own
  EXPECT(said("only one of aclrtCreateContext can be destroyed"));
  OK(aclrtGetCurrentContext(&now));
  OK(aclrtSetCurrentContext(now));
  OK(aclrtCreateContext(&own, 1));
  std::thread([&] { OK(aclrtDestroyContext(own)); }).join();
  EXPECT_CODE(107002, aclrtGetCurrentContext(&now));  // a dead one is not handed out
  OK(aclrtSetDevice(1));
  EXPECT_CODE(100000, aclrtSetCurrentContext(nullptr));
  std::thread([] {
    int32_t other = -1;
    EXPECT_CODE(107002, aclrtGetDevice(&other));  // a thread has a device of its own
    OK(aclrtSetDevice(0));
    OK(aclrtGetDevice(&other));
    EXPECT(other == 0);
  }).join();
  OK(aclrtGetDevice(&device));
  EXPECT(device == 1);
  aclrtRunMode mode = ACL_DEVICE;
  OK(aclrtGetRunMode(&mode));
  EXPECT(mode == ACL_HOST);
  int32_t major = -1, minor = -1, patch = -1;
  OK(aclrtGetVersion(&major, &minor, &patch));
  EXPECT(major >= 0 && minor >= 0 && patch >= 0);
  EXPECT(std::strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
  OK(aclrtResetDevice(1));
  EXPECT_CODE(107002, aclrtGetDevice(&device));
  OK(aclrtSetDevice(0));
}

struct Gate {
  std::atomic<bool> open{false};
};

// Holds a stream back: its callback returns when the gate opens.
void pass_gate(void* gate) {
  while (!static_cast<Gate*>(gate)->open) std::this_thread::yield();
}

// A stream that is busy until the gate opens: a thread of its own runs the blocking callback.
class HeldStream {
 public:
  HeldStream() {
    OK(aclrtCreateStream(&stream));
    helper = std::thread([this] {
      while (!ready) std::this_thread::yield();
      OK(aclrtProcessReport(-1));
    });
    OK(aclrtSubscribeReport(static_cast<uint64_t>(helper.native_handle()), stream));
    OK(aclrtLaunchCallback(pass_gate, &gate, ACL_CALLBACK_BLOCK, stream));
    ready = true;
  }
  void release() {
    gate.open = true;
    helper.join();
  }
  ~HeldStream() {
    if (helper.joinable()) release();
    OK(aclrtDestroyStream(stream));
  }
  aclrtStream stream = nullptr;
  Gate gate;
  std::atomic<bool> ready{false};
  std::thread helper;
};

void order_queries_and_timeouts() {
  HeldStream held;
  int value = 0, seen = 0;
  const int next = 2;
  OK(aclrtMemcpyAsync(&value, 4, &next, 4, ACL_MEMCPY_HOST_TO_HOST, held.stream));
  OK(aclrtMemcpyAsync(&seen, 4, &value, 4, ACL_MEMCPY_HOST_TO_HOST, held.stream));
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  OK(aclrtStreamQuery(held.stream, &status));
  EXPECT(status == ACL_STREAM_STATUS_NOT_READY && value == 0);
  EXPECT_CODE(500001, aclrtSynchronizeStreamWithTimeout(held.stream, 20));
  EXPECT(said("still has work after 20 ms"));
  held.release();
  OK(aclrtSynchronizeStreamWithTimeout(held.stream, -1));
  OK(aclrtStreamQuery(held.stream, &status));
  EXPECT(status == ACL_STREAM_STATUS_COMPLETE && seen == 2);
}

void events() {
  HeldStream held;
  aclrtStream other = nullptr;
  OK(aclrtCreateStreamWithConfig(&other, 0, 0));
  aclrtEvent start = nullptr, end = nullptr;
  OK(aclrtCreateEvent(&start));
  OK(aclrtCreateEventWithFlag(&end, 0));
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  OK(aclrtQueryEventStatus(start, &status));
  EXPECT(status == ACL_EVENT_RECORDED_STATUS_NOT_READY);
  float milliseconds = -1;
  EXPECT_CODE(107000, aclrtEventElapsedTime(&milliseconds, start, end));
  OK(aclrtSynchronizeEvent(start));  // never recorded: nothing to wait for
  int value = 1, copy = 0;
  const int next = 2;
  OK(aclrtRecordEvent(start, held.stream));
  OK(aclrtMemcpyAsync(&value, 4, &next, 4, ACL_MEMCPY_HOST_TO_HOST, held.stream));
  OK(aclrtRecordEvent(end, held.stream));
  OK(aclrtStreamWaitEvent(other, end));
  OK(aclrtMemcpyAsync(&copy, 4, &value, 4, ACL_MEMCPY_HOST_TO_HOST, other));
  OK(aclrtQueryEventStatus(end, &status));
  EXPECT(status == ACL_EVENT_RECORDED_STATUS_NOT_READY && copy == 0);
  held.release();
  OK(aclrtSynchronizeEvent(end));
  EXPECT(value == 2);
  OK(aclrtSynchronizeStream(other));
  EXPECT(copy == 2);
  OK(aclrtQueryEventStatus(end, &status));
  EXPECT(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  OK(aclrtEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0);
  OK(aclrtDestroyEvent(start));
  OK(aclrtDestroyEvent(start));
  EXPECT_CODE(100000, aclrtRecordEvent(start, other));
  EXPECT_CODE(100000, aclrtDestroyEvent(nullptr));
  OK(aclrtDestroyEvent(end));
  OK(aclrtDestroyStream(other));
}

void default_stream_and_device() {
  int value = 0;
  const int next = 3;
  OK(aclrtMemcpyAsync(&value, 4, &next, 4, ACL_MEMCPY_HOST_TO_HOST, nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT(value == 3);
  OK(aclrtMemsetAsync(&value, 4, 0, 4, nullptr));
  OK(aclrtSynchronizeDevice());
  EXPECT(value == 0);
}

void add_one(void* number) { ++*static_cast<int*>(number); }

void callbacks() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  int number = 0;
  EXPECT_CODE(107000, aclrtLaunchCallback(add_one, &number, ACL_CALLBACK_NO_BLOCK, stream));
  EXPECT(said("no thread has subscribed"));
  EXPECT_CODE(107000, aclrtProcessReport(1));
  const uint64_t me = static_cast<uint64_t>(pthread_self());
  OK(aclrtSubscribeReport(me, stream));
  EXPECT_CODE(107000, aclrtSubscribeReport(me, stream));
  EXPECT_CODE(500001, aclrtProcessReport(10));
  OK(aclrtLaunchCallback(add_one, &number, ACL_CALLBACK_NO_BLOCK, stream));
  OK(aclrtSynchronizeStream(stream));  // does not wait for the callback itself
  EXPECT(number == 0);
  OK(aclrtProcessReport(1000));
  EXPECT(number == 1);
  OK(aclrtLaunchCallback(add_one, &number, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtUnSubscribeReport(me, stream));  // lets the stream go on without it
  OK(aclrtSynchronizeStreamWithTimeout(stream, 10000));
  EXPECT(number == 1);
  EXPECT_CODE(107000, aclrtUnSubscribeReport(me, stream));
  EXPECT_CODE(100000, aclrtLaunchCallback(nullptr, nullptr, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtDestroyStream(stream));
}

// A callback that throws: its code is that of aclrtProcessReport, and the stream goes on.
void callbacks_that_throw() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  OK(aclrtLaunchCallback([](void*) { throw std::runtime_error("enough"); }, nullptr, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtLaunchCallback([](void*) { throw 42; }, nullptr, ACL_CALLBACK_BLOCK, stream));
  EXPECT_CODE(500000, aclrtProcessReport(10000));
  EXPECT(said("aclrtProcessReport: enough."));
  EXPECT_CODE(500000, aclrtProcessReport(10000));
  EXPECT(said("no std::exception"));
  OK(aclrtSynchronizeStreamWithTimeout(stream, 10000));
  OK(aclrtDestroyStream(stream));
}

// Whoever waits for callbacks is told when none will come any more.
void unsubscribed_while_waiting() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  std::atomic<bool> subscribed{false};
  std::thread waiter([&] {
    while (!subscribed) std::this_thread::yield();
    EXPECT_CODE(107000, aclrtProcessReport(-1));
    EXPECT(said("unsubscribed while it waited"));
  });
  const uint64_t thread = static_cast<uint64_t>(waiter.native_handle());
  OK(aclrtSubscribeReport(thread, stream));
  subscribed = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  OK(aclrtUnSubscribeReport(thread, stream));
  waiter.join();
  OK(aclrtDestroyStream(stream));
}

// Destroying a stream ends its subscription, also in the thread that its callbacks wait for.
void destroyed_with_a_callback_on_the_way() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  int number = 0;
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  OK(aclrtLaunchCallback(add_one, &number, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtDestroyStream(stream));
  EXPECT_CODE(107000, aclrtProcessReport(1));
  EXPECT(number == 0);
}

constexpr int kMostQueued = 65536;

// A full queue makes whoever brings more work wait; threads that run callbacks do not, for streams wait for them.
void a_full_queue() {
  HeldStream held;
  aclrtStream mine = nullptr;
  OK(aclrtCreateStream(&mine));
  int value = 0;
  for (int i = 0; i < kMostQueued; ++i) OK(aclrtMemsetAsync(&value, 4, i, 4, held.stream));
  std::atomic<bool> taken{false};
  std::thread late([&] {
    OK(aclrtMemsetAsync(&value, 4, 1, 4, held.stream));
    taken = true;
  });
  OK(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), mine));
  OK(aclrtMemsetAsync(&value, 4, 2, 4, held.stream));
  OK(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), mine));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT(!taken);
  held.release();
  late.join();
  OK(aclrtSynchronizeStream(held.stream));
  EXPECT(value == 0x01010101 || value == 0x02020202);
  OK(aclrtDestroyStream(mine));
}

void streams_that_are_none() {
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtDestroyStream(stream));
  OK(aclrtDestroyStream(stream));
  EXPECT_CODE(100000, aclrtDestroyStream(nullptr));
  EXPECT_CODE(100000, aclrtSynchronizeStream(stream));
  EXPECT_CODE(100000, aclrtSynchronizeStream(&stream));
  EXPECT(said("which is no live aclrtStream"));
  EXPECT_CODE(100000, aclrtCreateStream(nullptr));
}

// Memory freed while a stream still needs it lives until the stream has passed.
void early_free() {
  HeldStream held;
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  int value = 0;
  OK(aclrtMemsetAsync(memory, 4, 1, 4, held.stream));
  OK(aclrtMemcpyAsync(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST, held.stream));
  OK(aclrtFree(memory));
  held.release();
  OK(aclrtSynchronizeStream(held.stream));
  EXPECT(value == 0x01010101);
}

// Memory is freed while another thread waits for the end of a stream that needs it.
void free_while_a_stream_ends() {
  HeldStream held;
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  int value = 0;
  OK(aclrtMemsetAsync(memory, 4, 1, 4, held.stream));
  OK(aclrtMemcpyAsync(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST, held.stream));
  std::thread ender([&] { OK(aclrtDestroyStream(held.stream)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  OK(aclrtFree(memory));
  EXPECT_CODE(100000, aclrtMemsetAsync(&value, 4, 1, 4, held.stream));  // it takes no more work
  held.release();
  ender.join();
  EXPECT(value == 0x01010101);
}

// Frees and ends of streams at any time: a free of what is alive answers 0.
void frees_and_ends_in_any_order() {
  std::atomic<bool> done{false};
  std::thread ender([&] {
    int value = 0;
    while (!done) {
      aclrtStream stream = nullptr;
      OK(aclrtCreateStream(&stream));
      for (int i = 0; i < 5; ++i) OK(aclrtMemsetAsync(&value, 4, i, 4, stream));
      OK(aclrtDestroyStream(stream));
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) {
    void* memory = nullptr;
    OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtFree(memory));
  }
  done = true;
  ender.join();
}

}  // namespace

int main() {
  OK(aclInit(nullptr));
  devices_and_contexts();
  order_queries_and_timeouts();
  events();
  default_stream_and_device();
  callbacks();
  callbacks_that_throw();
  unsubscribed_while_waiting();
  destroyed_with_a_callback_on_the_way();
  a_full_queue();
  streams_that_are_none();
  early_free();
  free_while_a_stream_ends();
  frees_and_ends_in_any_order();
  OK(aclFinalize());
  std::puts("fine");
}
