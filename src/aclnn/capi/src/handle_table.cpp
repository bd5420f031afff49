#include "handle_table.h"

#include <pthread.h>

#include <type_traits>

namespace aclnn_cpu {

namespace {
struct alignas(kLine) Lock {
  std::mutex mutex;
};
Lock locks[kShards];
static_assert(std::is_trivially_destructible_v<Lock>, "a lock is used until the process is gone");

std::atomic<unsigned> threads_of[kShards];

// A key, and no thread_local with a destructor: to register one takes memory, and ends the process where none is left.
pthread_key_t at_the_end_of_a_thread() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, [](void* count) { static_cast<std::atomic<unsigned>*>(count)->fetch_sub(1); });
    return made;
  }();
  return key;
}

// Where the fewest living threads are, however many came and went.
unsigned join_a_shard() {
  for (;;) {
    auto* fewest = std::min_element(threads_of, threads_of + kShards);
    unsigned count = *fewest;
    if (!fewest->compare_exchange_weak(count, count + 1)) continue;
    pthread_setspecific(at_the_end_of_a_thread(), fewest);
    return static_cast<unsigned>(fewest - threads_of);
  }
}

}  // namespace

std::mutex& shard_lock(unsigned shard) { return locks[shard].mutex; }

unsigned shard_of_this_thread() {
  static thread_local const unsigned mine = join_a_shard();
  return mine;
}

}  // namespace aclnn_cpu
