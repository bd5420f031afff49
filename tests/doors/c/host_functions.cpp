// Host functions run on their stream, in order; what may not be done inside them is refused, and nothing waits for itself.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "suite.h"

namespace {

struct Order {
  std::atomic<int> next{0};
  int seen[3] = {-1, -1, -1};
};

void note(void* order) {
  auto* given = static_cast<Order*>(order);
  const int mine = given->next++;
  if (mine < 3) given->seen[mine] = mine;
}

void in_order(aclrtStream stream) {
  Order order;
  Elu elu({1, 2}, {1, -0.5f});
  OK(aclrtLaunchHostFunc(stream, note, &order));
  OK(elu.plan());
  OK(elu.run(stream));
  OK(aclrtLaunchHostFunc(stream, note, &order));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(order.next == 2 && order.seen[1] == 1);
  EXPECT(elu.outcome() == elu_gradient({1, 2}, {1, -0.5f}));
}

struct Waits {
  aclrtStream stream;
  aclrtEvent event;
  int codes[6];
  bool has_sentence;
};

void try_to_wait(void* given) {
  auto* waits = static_cast<Waits*>(given);
  int* code = waits->codes;
  *code++ = aclrtSynchronizeStream(waits->stream);
  *code++ = aclrtSynchronizeStreamWithTimeout(waits->stream, -1);
  *code++ = aclrtSynchronizeDevice();
  *code++ = aclrtSynchronizeEvent(waits->event);
  *code++ = aclrtDestroyStream(waits->stream);
  *code++ = aclrtResetDeviceForce(0);
  waits->has_sentence = said("a host function cannot wait");
}

void no_waits(aclrtStream stream) {
  Waits waits = {stream, nullptr, {}, false};
  OK(aclrtCreateEvent(&waits.event));
  OK(aclrtLaunchHostFunc(stream, try_to_wait, &waits));
  OK(aclrtRecordEvent(waits.event, stream));
  OK(aclrtSynchronizeStream(stream));
  for (const int code : waits.codes) EXPECT_CODE(207000, code);
  EXPECT(waits.has_sentence);
  OK(aclrtDestroyEvent(waits.event));
}

void throws_words(void*) { throw std::runtime_error("no paper"); }
void throws_a_number(void*) { throw 7; }

void what_is_thrown(aclrtStream stream) {
  OK(aclrtLaunchHostFunc(stream, throws_words, nullptr));
  EXPECT_CODE(500000, aclrtSynchronizeStream(stream));
  EXPECT(said("aclrtLaunchHostFunc: the function threw an exception: no paper."));
  OK(aclrtLaunchHostFunc(stream, throws_a_number, nullptr));
  EXPECT_CODE(500000, aclrtSynchronizeStream(stream));
  EXPECT(said("something that is no std::exception"));
  OK(aclrtSynchronizeStream(stream));
}

struct Chain {
  aclrtStream stream;
  std::atomic<int> left;
};

void launch_the_next(void* given) {
  auto* chain = static_cast<Chain*>(given);
  if (--chain->left > 0 && aclrtLaunchHostFunc(chain->stream, launch_the_next, chain) != 0) std::abort();
}

// Each starts the next on its own stream; destroying the stream in between lets the rest be refused, never lost.
void chains(aclrtStream stream) {
  Chain chain = {stream, {1000}};
  OK(aclrtLaunchHostFunc(stream, launch_the_next, &chain));
  while (chain.left > 0) std::this_thread::yield();
  OK(aclrtSynchronizeStream(stream));
}

void wrong_arguments(aclrtStream stream) {
  EXPECT_CODE(100000, aclrtLaunchHostFunc(stream, nullptr, nullptr));
  EXPECT(said("aclrtLaunchHostFunc: function is null"));
  aclrtStream dead = nullptr;
  OK(aclrtCreateStream(&dead));
  OK(aclrtDestroyStreamForce(dead));
  OK(aclrtDestroyStreamForce(dead));
  EXPECT_CODE(100000, aclrtLaunchHostFunc(dead, note, nullptr));
  EXPECT(said("no live aclrtStream"));
  EXPECT_CODE(100000, aclrtDestroyStreamForce(nullptr));
  EXPECT_CODE(100000, aclrtDestroyStreamForce(&dead));
  aclrtEvent event = nullptr;
  EXPECT_CODE(100000, aclrtCreateEventExWithFlag(nullptr, ~0u));
  OK(aclrtCreateEventExWithFlag(&event, ~0u));
  EXPECT_CODE(100000, aclrtQueryEvent(event, nullptr));
  OK(aclrtDestroyEvent(event));
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_CODE(100000, aclrtQueryEvent(event, &status));
  EXPECT_CODE(100000, aclrtQueryEvent(nullptr, &status));
  EXPECT_CODE(100000, aclrtQueryEvent(stream, &status));
  EXPECT(said("no live aclrtEvent") && status == ACL_EVENT_STATUS_RESERVED);
  EXPECT_CODE(107001, aclrtResetDeviceForce(2));
  EXPECT_CODE(100000, aclsysGetCANNVersion(ACL_PKG_NAME_CANN, nullptr));
  aclCANNPackageVersion version;
  EXPECT_CODE(100000, aclsysGetCANNVersion(static_cast<aclCANNPackageName>(8), &version));
  EXPECT(said("it must be 0..7"));
}

void queries(aclrtStream stream) {
  aclrtEvent event = nullptr;
  OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_TIME_LINE));
  OK(aclrtRecordEvent(event, stream));
  OK(aclrtSynchronizeEvent(event));
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  OK(aclrtQueryEvent(event, &status));
  EXPECT(status == ACL_EVENT_STATUS_COMPLETE);
  OK(aclrtDestroyEvent(event));
}

void all() {
  aclrtStream stream = nullptr;
  OK(aclrtSetDevice(0));
  OK(aclrtCreateStream(&stream));
  in_order(stream);
  no_waits(stream);
  what_is_thrown(stream);
  chains(stream);
  wrong_arguments(stream);
  queries(stream);
  OK(aclrtDestroyStreamForce(stream));
}

}  // namespace

int main() {
  all();  // before aclInit
  OK(aclInit(nullptr));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(all);
  for (std::thread& thread : threads) thread.join();
  OK(aclFinalize());
  all();  // and after aclFinalize
  std::puts("fine");
}
