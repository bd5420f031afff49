// A few integers without a visit to the heap: shapes are short, and handles are made all the time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace aclnn_cpu {

template <size_t kRoom>
class Small {
 public:
  Small() = default;
  Small(const Small& other) { assign(other.begin(), other.size()); }
  Small& operator=(const Small& other) {
    if (this != &other) assign(other.begin(), other.size());
    return *this;
  }
  Small(Small&& other) noexcept { *this = std::move(other); }
  Small& operator=(Small&& other) noexcept {
    count_ = std::exchange(other.count_, 0);
    if (count_ <= kRoom) std::copy(other.room_, other.room_ + count_, room_);
    more_.swap(other.more_);
    return *this;
  }

  // `count` places, whose values are still to be written.
  int64_t* make(size_t count) {
    if (count > kRoom) more_.resize(count);
    count_ = count;
    return data();
  }

  void assign(const int64_t* values, size_t count) { std::copy(values, values + count, make(count)); }

  size_t size() const { return count_; }
  int64_t* data() { return count_ > kRoom ? more_.data() : room_; }
  const int64_t* begin() const { return count_ > kRoom ? more_.data() : room_; }
  const int64_t* end() const { return begin() + count_; }
  int64_t operator[](size_t i) const { return begin()[i]; }

 private:
  size_t count_ = 0;
  int64_t room_[kRoom];
  std::vector<int64_t> more_;
};

}  // namespace aclnn_cpu
