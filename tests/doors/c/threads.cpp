// Eight threads, a thousand calls each, on streams of their own: every result is right and nothing is left behind.
#include <thread>

#include "suite.h"

extern "C" size_t aclnn_cpu_live_objects(void);

namespace {

constexpr int kThreads = 8, kCalls = 1000;

void worker(int number) {
  OK(aclrtSetDevice(number % 2));
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  const std::vector<float> grad = {float(number), -1, 2, float(-number)}, result = {-0.5f, 1, -0.25f, -0.75f};
  for (int i = 0; i < kCalls; ++i) {
    Elu elu(grad, result);
    OK(elu.plan());
    OK(elu.run(stream));
    if (i % 50 != 0) continue;
    OK(aclrtSynchronizeStream(stream));
    EXPECT(elu.outcome() == elu_gradient(grad, result));
  }
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtDestroyStream(stream));
}

void round_of_threads() {
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) threads.emplace_back(worker, number);
  for (std::thread& thread : threads) thread.join();
}

// Where the calling thread makes its objects: four bits of their handles.
unsigned shard_of_this_thread() { return reinterpret_cast<uint64_t>(scalar_of(1).get()) >> 54 & 15; }

// However many came and went before: two at one place would wait for each other.
void a_new_thread_is_where_no_other_is() {
  const unsigned here = shard_of_this_thread();
  for (int i = 0; i < 40; ++i) std::thread([&] { EXPECT(shard_of_this_thread() != here); }).join();
}

}  // namespace

int main() {
  OK(aclInit(nullptr));
  OK(aclrtSetDevice(0));
  const size_t before = aclnn_cpu_live_objects();
  round_of_threads();
  a_new_thread_is_where_no_other_is();
  EXPECT(aclnn_cpu_live_objects() == before);
  OK(aclFinalize());
  std::puts("fine");
}
