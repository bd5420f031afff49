// What threads write all the time, kept so that they do not meet: a line of memory that two write travels to and fro.
#pragma once

#include <atomic>
#include <cstddef>

namespace aclnn_cpu {

constexpr size_t kLine = 64;  // bytes of a cache line
constexpr unsigned kShards = 16;

// The shard of the calling thread: threads that mind their own objects never meet.
unsigned shard_of_this_thread();

// A number that is counted up and down from many sides. Whoever counted up counts down on the same side.
class SpreadCount {
 public:
  void add(unsigned side, long more) { sides_[side % kShards].count.fetch_add(more); }

  long total() const {
    long sum = 0;
    for (const Side& side : sides_) sum += side.count.load();
    return sum;
  }

  void clear() {
    for (Side& side : sides_) side.count.store(0);
  }

 private:
  struct alignas(kLine) Side {
    std::atomic<long> count{0};
  };
  Side sides_[kShards];
};

}  // namespace aclnn_cpu
