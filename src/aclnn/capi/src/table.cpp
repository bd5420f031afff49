#include "table.h"

#include <atomic>

namespace aclnn_cpu {

std::mutex& shard_lock(unsigned shard) {
  static auto* locks = new std::mutex[kShards];
  return locks[shard];
}

unsigned shard_of_this_thread() {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned mine = next.fetch_add(1) % kShards;
  return mine;
}

}  // namespace aclnn_cpu
