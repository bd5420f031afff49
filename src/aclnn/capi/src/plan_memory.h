// What was planned, by signature: phase 1 finds it again without asking the engine.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cache_lines.h"
#include "engine.h"

namespace aclnn_cpu {

template <class Plan>
class PlanMemory {
 public:
  std::shared_ptr<const Plan> find(Words signature) {
    Store& own = shards_[shard_of_this_thread()];
    if (auto plan = own.find(signature)) return plan;
    const auto plan = all_.find(signature);
    if (plan == nullptr) return nullptr;
    own.remember(signature, counted_apart(plan));
    return plan;
  }

  void remember(Words signature, std::shared_ptr<const Plan> plan) { all_.remember(signature, std::move(plan)); }

  // Who is just finding a plan may keep it.
  void forget() {
    all_.forget();
    for (Store& shard : shards_) shard.forget();
  }

 private:
  class alignas(kLine) Store {
   public:
    std::shared_ptr<const Plan> find(Words signature) {
      std::lock_guard<std::mutex> hold(mutex_);
      const auto found = plans_.find(hash_of(signature));
      return found != plans_.end() && found->second.is_of(signature) ? found->second.plan : nullptr;
    }

    // Of two signatures with one hash the later one is remembered. When there are too many, all are forgotten: the
    // engine behind remembers more, and in a better order.
    void remember(Words signature, std::shared_ptr<const Plan> plan) {
      Known known = {{signature.data, signature.data + signature.count}, std::move(plan)};
      std::unordered_map<uint64_t, Known> forgotten;  // plans end outside the lock: that may take Python's
      std::lock_guard<std::mutex> hold(mutex_);
      if (plans_.size() >= kMost) plans_.swap(forgotten);
      std::swap(plans_[hash_of(signature)], known);
    }

    void forget() {
      std::unordered_map<uint64_t, Known> forgotten;
      std::lock_guard<std::mutex> hold(mutex_);
      plans_.swap(forgotten);
    }

   private:
    static constexpr size_t kMost = 1024;

    struct Known {
      std::vector<int64_t> signature;
      std::shared_ptr<const Plan> plan;

      bool is_of(Words words) const {
        return std::equal(signature.begin(), signature.end(), words.data, words.data + words.count);
      }
    };

    static uint64_t hash_of(Words words) {
      uint64_t hash = words.count;
      for (size_t i = 0; i < words.count; ++i) {
        hash = (hash ^ static_cast<uint64_t>(words.data[i])) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
      }
      return hash;
    }

    std::mutex mutex_;
    std::unordered_map<uint64_t, Known> plans_;
  };

  // Threads that take and leave one count would meet at it: every shard has its own, with no other's memory around it.
  struct alignas(kLine) Apart {
    std::shared_ptr<const Plan> plan;
  };
  static std::shared_ptr<const Plan> counted_apart(const std::shared_ptr<const Plan>& plan) {
    return {std::make_shared<Apart>(Apart{plan}), plan.get()};
  }

  Store all_, shards_[kShards];
};

}  // namespace aclnn_cpu
