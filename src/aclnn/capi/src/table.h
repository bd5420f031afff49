// The live table: every object a program holds is a slot here, and what the program holds is its handle.
//
// A handle is a number in a pointer's clothes: tag and kind in the top byte (no real address has such bits), then shard
// and slot, then the slot's generation. It is never followed as an address, and since a slot's generation grows with
// every use, no handle ever comes back. A stale, foreign or made-up handle is simply not found.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace aclnn_cpu {

enum class Kind : uint8_t {
  tensor = 1,
  tensor_list,
  scalar,
  scalar_list,
  int_array,
  bool_array,
  float_array,
  executor,
  stream,
  event,
  context,
};

// What a pointer is to a table.
enum class Standing { live, gone, foreign };

constexpr unsigned kShards = 16;

// One lock per shard, shared by all tables so that a fork has few to hold. Never destroyed.
std::mutex& shard_lock(unsigned shard);

// The shard new objects of the calling thread go to: threads that mind their own objects never meet.
unsigned shard_of_this_thread();

struct Handle {
  static constexpr uint64_t kTag = 0xA;
  static constexpr uint32_t kMostSlots = 1u << 20;  // per shard

  Kind kind;
  unsigned shard;
  uint32_t slot;
  uint32_t generation;

  void* pointer() const {
    const uint64_t bits = kTag << 60 | static_cast<uint64_t>(kind) << 56 | static_cast<uint64_t>(shard) << 52 |
                          static_cast<uint64_t>(slot) << 32 | generation;
    return reinterpret_cast<void*>(bits);
  }

  static bool read(const void* pointer, Kind kind, Handle* handle) {
    const uint64_t bits = reinterpret_cast<uint64_t>(pointer);
    if (bits >> 56 != (kTag << 4 | static_cast<uint64_t>(kind))) return false;
    *handle = {kind, static_cast<unsigned>(bits >> 52 & 0xF), static_cast<uint32_t>(bits >> 32 & 0xFFFFF),
               static_cast<uint32_t>(bits)};
    return true;
  }
};

template <class Object>
class Table {
 public:
  explicit Table(Kind kind) : kind_(kind) {}

  // The handle of a new object, or null when sixteen million are alive. `maker` is the code address that asked.
  void* insert(Object object, void* maker) {
    const unsigned shard = shard_of_this_thread();
    std::lock_guard<std::mutex> hold(shard_lock(shard));
    Shard& home = shards_[shard];
    if (home.unused.empty() && !add_slot(home)) return nullptr;
    const uint32_t index = home.unused.back();
    Slot& slot = home.slots[index];
    slot.object = std::move(object);
    home.unused.pop_back();
    slot.live = true;
    slot.maker = maker;
    ++home.alive;
    return Handle{kind_, shard, index, slot.generation}.pointer();
  }

  // Calls use(object) under the shard's lock; false when the handle is not live.
  template <class Use>
  bool with(const void* pointer, Use use) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return false;
    std::lock_guard<std::mutex> hold(shard_lock(handle.shard));
    Slot* slot = find(handle);
    if (slot == nullptr) return false;
    use(slot->object);
    return true;
  }

  // Takes the object out of the table, for good; false when the handle is not live.
  bool take(const void* pointer, Object* object) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return false;
    std::lock_guard<std::mutex> hold(shard_lock(handle.shard));
    Slot* slot = find(handle);
    if (slot == nullptr) return false;
    *object = std::move(slot->object);
    slot->object = Object();
    slot->live = false;
    Shard& home = shards_[handle.shard];
    --home.alive;
    if (++slot->generation != 0) home.unused.push_back(handle.slot);  // a slot whose generations are used up rests
    return true;
  }

  Standing standing(const void* pointer) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return Standing::foreign;
    std::lock_guard<std::mutex> hold(shard_lock(handle.shard));
    if (find(handle) != nullptr) return Standing::live;
    const auto& slots = shards_[handle.shard].slots;
    const bool was_one = handle.slot < slots.size() && handle.generation < slots[handle.slot].generation;
    return was_one ? Standing::gone : Standing::foreign;
  }

  size_t alive() {
    size_t count = 0;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      std::lock_guard<std::mutex> hold(shard_lock(shard));
      count += shards_[shard].alive;
    }
    return count;
  }

  // The code addresses that made what is alive.
  std::vector<void*> makers() {
    std::vector<void*> found;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      std::lock_guard<std::mutex> hold(shard_lock(shard));
      for (const Slot& slot : shards_[shard].slots) {
        if (slot.live) found.push_back(slot.maker);
      }
    }
    return found;
  }

 private:
  struct Slot {
    Object object{};
    void* maker = nullptr;
    uint32_t generation = 1;
    bool live = false;
  };

  struct Shard {
    std::deque<Slot> slots;  // a deque: slots never move
    std::vector<uint32_t> unused;
    size_t alive = 0;
  };

  // There is always room for every slot among the unused: giving one back never asks for memory.
  static bool add_slot(Shard& home) {
    const size_t count = home.slots.size();
    if (count >= Handle::kMostSlots) return false;
    if (home.unused.capacity() <= count) home.unused.reserve(2 * count + 16);
    home.slots.emplace_back();
    home.unused.push_back(static_cast<uint32_t>(count));
    return true;
  }

  Slot* find(const Handle& handle) {
    auto& slots = shards_[handle.shard].slots;
    if (handle.slot >= slots.size()) return nullptr;
    Slot& slot = slots[handle.slot];
    return slot.live && slot.generation == handle.generation ? &slot : nullptr;
  }

  Kind kind_;
  Shard shards_[kShards];
};

}  // namespace aclnn_cpu
