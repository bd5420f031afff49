// Random choices from a seed: the same seed makes the same calls.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}

  int64_t below(int64_t count) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t count) { return below(count) == 0; }
  float real() { return static_cast<float>(below(4001) - 2000) / 1000; }

  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }

  template <class Values>
  auto& pick(Values& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }

  // Numbers that break things: small ones mostly, then the edges.
  int64_t odd_number() {
    return one_in(3) ? pick<int64_t>({INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, int64_t{1} << 31, int64_t{1} << 62})
                     : between(-3, 9);
  }

 private:
  std::mt19937_64 engine_;
};
