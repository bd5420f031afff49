// What was planned, by signature: phase 1 finds it again without asking the engine.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "engine.h"

namespace aclnn_cpu {

template <class Plan>
class PlanMemory {
 public:
  std::shared_ptr<const Plan> find(Words signature) {
    std::shared_lock<std::shared_mutex> hold(mutex_);  // threads that only look do not meet
    const auto found = plans_.find(hash_of(signature));
    return found != plans_.end() && found->second.is_of(signature) ? found->second.plan : nullptr;
  }

  // Of two signatures with one hash the later one is remembered. When there are too many, all are forgotten: the engine
  // behind remembers more, and in a better order.
  void remember(Words signature, std::shared_ptr<const Plan> plan) {
    Known known = {{signature.data, signature.data + signature.count}, std::move(plan)};
    std::unordered_map<uint64_t, Known> forgotten;  // plans end outside the lock: that may take Python's
    std::lock_guard<std::shared_mutex> hold(mutex_);
    if (plans_.size() >= kMost) plans_.swap(forgotten);
    std::swap(plans_[hash_of(signature)], known);
  }

  void forget() {
    std::unordered_map<uint64_t, Known> forgotten;
    std::lock_guard<std::shared_mutex> hold(mutex_);
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

  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, Known> plans_;
};

}  // namespace aclnn_cpu
