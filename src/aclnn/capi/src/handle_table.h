// The live table: every object a program holds is a slot here, and what the program holds is its handle.
//
// A handle is a number in a pointer's clothes: a tag bit that no address of a process has, the kind, then shard and slot,
// then the slot's generation. It is a positive int64, for programs that keep handles in one. It is never followed as an
// address, and since a slot's generation grows with every use, no handle ever comes back. A stale, foreign or made-up
// handle is simply not found.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "object_kinds.h"

namespace aclnn_cpu {

// What a pointer is to a table.
enum class Standing { live, gone, foreign };

constexpr unsigned kShards = 16;

// One lock per shard, shared by all tables so that a fork has few to hold. Never destroyed.
std::mutex& shard_lock(unsigned shard);

// The shard new objects of the calling thread go to: threads that mind their own objects never meet.
unsigned shard_of_this_thread();

struct Handle {
  static constexpr unsigned kTagBit = 62, kKindBit = 58, kShardBit = 54, kSlotBit = 26;
  static constexpr uint32_t kMostSlots = 1u << (kShardBit - kSlotBit);  // per shard: memory ends before
  static constexpr uint32_t kGenerations = 1u << kSlotBit;

  Kind kind;
  unsigned shard;
  uint32_t slot;
  uint32_t generation;

  void* pointer() const {
    const uint64_t bits = uint64_t{1} << kTagBit | static_cast<uint64_t>(kind) << kKindBit |
                          static_cast<uint64_t>(shard) << kShardBit | static_cast<uint64_t>(slot) << kSlotBit |
                          generation;
    return reinterpret_cast<void*>(bits);
  }

  static bool read(const void* pointer, Kind kind, Handle* handle) {
    const uint64_t bits = reinterpret_cast<uint64_t>(pointer);
    if (bits >> kKindBit != (1u << (kTagBit - kKindBit) | static_cast<unsigned>(kind))) return false;
    *handle = {kind, static_cast<unsigned>(bits >> kShardBit) % kShards,
               static_cast<uint32_t>(bits >> kSlotBit) % kMostSlots, static_cast<uint32_t>(bits) % kGenerations};
    return true;
  }
};

template <class Object>
class Table {
 public:
  Table(Kind kind, const char* type) : kind_(kind), type_(type) {}

  // The name of its objects in sentences.
  const char* type() const { return type_; }

  // The handle of a new object; throws when there is no memory for it. `maker` is the code address that asked; null for
  // what is ours, which never counts as alive.
  void* insert(Object object, void* maker) {
    const unsigned shard = shard_of_this_thread();
    std::lock_guard<std::mutex> hold(shard_lock(shard));
    Shard& home = shards_[shard];
    if (home.first_unused == kNone) add_chunk(home);
    const uint32_t index = home.first_unused;
    Slot& slot = home.at(index);
    slot.object = std::move(object);
    home.first_unused = slot.next_unused;
    slot.live = true;
    slot.maker = maker;
    if (maker != nullptr) ++home.alive;
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
    if (slot->maker != nullptr) --home.alive;
    if (++slot->generation == Handle::kGenerations) return true;  // a slot whose generations are used up rests
    slot->next_unused = home.first_unused;
    home.first_unused = handle.slot;
    return true;
  }

  Standing standing(const void* pointer) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return Standing::foreign;
    std::lock_guard<std::mutex> hold(shard_lock(handle.shard));
    if (find(handle) != nullptr) return Standing::live;
    Shard& home = shards_[handle.shard];
    const bool was_one = handle.slot < home.slots() && handle.generation < home.at(handle.slot).generation;
    return was_one && handle.generation > 0 ? Standing::gone : Standing::foreign;
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
      Shard& home = shards_[shard];
      for (uint32_t index = 0; index < home.slots(); ++index) {
        if (home.at(index).live && home.at(index).maker != nullptr) found.push_back(home.at(index).maker);
      }
    }
    return found;
  }

 private:
  static constexpr uint32_t kChunk = 64;  // slots that come at once
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Slot {
    Object object{};
    void* maker = nullptr;
    uint32_t generation = 1;
    uint32_t next_unused = kNone;  // unused slots form a list of their own: giving one back never asks for memory
    bool live = false;
  };

  struct Shard {
    std::vector<std::unique_ptr<Slot[]>> chunks;  // slots never move
    uint32_t first_unused = kNone;
    size_t alive = 0;

    uint32_t slots() const { return static_cast<uint32_t>(chunks.size()) * kChunk; }
    Slot& at(uint32_t index) { return chunks[index / kChunk][index % kChunk]; }
  };

  static void add_chunk(Shard& home) {
    const uint32_t first = home.slots();
    if (first >= Handle::kMostSlots) throw std::runtime_error("no handle is left for one more object of this kind");
    home.chunks.push_back(std::make_unique<Slot[]>(kChunk));
    for (uint32_t i = 0; i < kChunk; ++i) home.at(first + i).next_unused = i + 1 < kChunk ? first + i + 1 : kNone;
    home.first_unused = first;
  }

  Slot* find(const Handle& handle) {
    Shard& home = shards_[handle.shard];
    if (handle.slot >= home.slots()) return nullptr;
    Slot& slot = home.at(handle.slot);
    return slot.live && slot.generation == handle.generation ? &slot : nullptr;
  }

  const Kind kind_;
  const char* const type_;
  Shard shards_[kShards];
};

}  // namespace aclnn_cpu
