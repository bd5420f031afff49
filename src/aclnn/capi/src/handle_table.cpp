#include "handle_table.h"

#include <type_traits>

namespace aclnn_cpu {

namespace {
struct alignas(kLine) Lock {
  std::mutex mutex;
};
Lock locks[kShards];
static_assert(std::is_trivially_destructible_v<Lock>, "a lock is used until the process is gone");
}  // namespace

std::mutex& shard_lock(unsigned shard) { return locks[shard].mutex; }

unsigned shard_of_this_thread() {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned mine = next.fetch_add(1) % kShards;
  return mine;
}

}  // namespace aclnn_cpu
