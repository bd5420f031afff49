#include "handle_table.h"

#include <atomic>
#include <type_traits>

namespace aclnn_cpu {

namespace {
std::mutex locks[kShards];
static_assert(std::is_trivially_destructible_v<std::mutex>, "a lock is used until the process is gone");
}  // namespace

std::mutex& shard_lock(unsigned shard) { return locks[shard]; }

unsigned shard_of_this_thread() {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned mine = next.fetch_add(1) % kShards;
  return mine;
}

}  // namespace aclnn_cpu
