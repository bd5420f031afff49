// The live table: every object a program holds is a slot here, and what the program holds is its handle.
//
// A handle is a number in a pointer's clothes: a tag bit that no address of a process has, the kind, then shard and slot,
// then the slot's generation. It is a positive int64, for programs that keep handles in one. It is never followed as an
// address, and since a slot's generation grows with every use, no handle ever comes back. A stale, foreign or made-up
// handle is simply not found.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cache_lines.h"
#include "object_kinds.h"

namespace aclnn_cpu {

// What a pointer is to a table.
enum class Standing { live, gone, foreign };

// One lock per shard, for coming and going, shared by all tables so that a fork has few to hold. Never destroyed.
std::mutex& shard_lock(unsigned shard);

// The lock of one object while it is read, which is short: whoever meets another there does not sleep. In the child of a
// fork it is set free; nothing larger than an address is written under it alone.
class SlotLock {
 public:
  void lock() {
    for (unsigned turn = 1; held_.exchange(true, std::memory_order_acquire); ++turn) {
      if (turn % 64 == 0) sched_yield();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

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

  // The handle of a new object; throws when there is no memory for it. `call_site` is the code address that asked; null
  // for what is ours, which never counts as alive.
  void* insert(Object object, void* call_site) {
    const unsigned shard = shard_of_this_thread();
    std::lock_guard<std::mutex> hold(shard_lock(shard));
    Shard& home = shards_[shard];
    if (home.first_unused == kNone) add_chunk(home);
    const uint32_t index = home.first_unused;
    Slot& slot = home.at(index);
    std::lock_guard<SlotLock> alone(slot.lock);
    slot.object = std::move(object);
    home.first_unused = slot.next_unused;
    slot.live = true;
    slot.call_site = call_site;
    if (call_site != nullptr) ++home.alive;
    return Handle{kind_, shard, index, slot.generation}.pointer();
  }

  // Calls use(object) under the object's lock; false when the handle is not live.
  template <class Use>
  bool with(const void* pointer, Use use) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return false;
    Slot* slot = shards_[handle.shard].find(handle.slot);
    if (slot == nullptr) return false;
    std::lock_guard<SlotLock> alone(slot->lock);
    if (!slot->is(handle)) return false;
    use(slot->object);
    return true;
  }

  // Takes the object out of the table, for good; false when the handle is not live.
  bool take(const void* pointer, Object* object) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return false;
    std::lock_guard<std::mutex> hold(shard_lock(handle.shard));
    Shard& home = shards_[handle.shard];
    Slot* slot = home.find(handle.slot);
    if (slot == nullptr) return false;
    std::lock_guard<SlotLock> alone(slot->lock);
    if (!slot->is(handle)) return false;
    *object = std::move(slot->object);
    slot->object = Object();
    slot->live = false;
    if (slot->call_site != nullptr) --home.alive;
    if (++slot->generation == Handle::kGenerations) return true;  // a slot whose generations are used up rests
    slot->next_unused = home.first_unused;
    home.first_unused = handle.slot;
    return true;
  }

  Standing standing(const void* pointer) {
    Handle handle;
    if (!Handle::read(pointer, kind_, &handle)) return Standing::foreign;
    std::lock_guard<std::mutex> hold(shard_lock(handle.shard));
    const Slot* slot = shards_[handle.shard].find(handle.slot);
    if (slot == nullptr) return Standing::foreign;
    if (slot->is(handle)) return Standing::live;
    return handle.generation > 0 && handle.generation < slot->generation ? Standing::gone : Standing::foreign;
  }

  // In the child of a fork: whoever held the lock of an object stayed in the parent.
  void set_free() {
    for (Shard& home : shards_) {
      for (uint32_t index = 0; index < home.slots(); ++index) home.at(index).lock.unlock();
    }
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
  std::vector<void*> call_sites() {
    std::vector<void*> found;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      std::lock_guard<std::mutex> hold(shard_lock(shard));
      Shard& home = shards_[shard];
      for (uint32_t index = 0; index < home.slots(); ++index) {
        if (home.at(index).live && home.at(index).call_site != nullptr) found.push_back(home.at(index).call_site);
      }
    }
    return found;
  }

 private:
  static constexpr uint32_t kChunk = 64;  // slots that come at once
  static constexpr uint32_t kNone = UINT32_MAX;

  struct alignas(kLine) Slot {
    Object object{};
    void* call_site = nullptr;
    uint32_t generation = 1;
    uint32_t next_unused = kNone;  // unused slots form a list of their own: giving one back never asks for memory
    bool live = false;
    SlotLock lock;

    bool is(const Handle& handle) const { return live && generation == handle.generation; }
  };

  // One object, so that the directory knows where its memory begins and no checker takes it for half lost.
  using Chunk = std::array<Slot, kChunk>;

  // Slots never move. Where they are may be asked without the shard's lock: a directory that has become too small stays,
  // and stays known, so that it is no leak.
  struct alignas(kLine) Shard {
    std::atomic<Chunk**> directory{nullptr};
    std::vector<Chunk**> outgrown;
    std::atomic<uint32_t> chunks{0};
    uint32_t room = 0;  // in the directory
    uint32_t first_unused = kNone;
    size_t alive = 0;

    uint32_t slots() const { return chunks.load(std::memory_order_acquire) * kChunk; }
    Slot& at(uint32_t index) const { return (*directory.load(std::memory_order_acquire)[index / kChunk])[index % kChunk]; }
    Slot* find(uint32_t index) const { return index < slots() ? &at(index) : nullptr; }
  };

  static void add_chunk(Shard& home) {
    const uint32_t count = home.chunks, first = home.slots();
    if (first >= Handle::kMostSlots) throw std::runtime_error("no handle is left for one more object of this kind");
    auto chunk = std::make_unique<Chunk>();
    for (uint32_t i = 0; i < kChunk; ++i) (*chunk)[i].next_unused = i + 1 < kChunk ? first + i + 1 : kNone;
    if (count == home.room) {
      const uint32_t room = count == 0 ? 4 : 2 * count;
      auto** larger = new Chunk*[room];
      std::copy_n(home.directory.load(), count, larger);
      if (count > 0) home.outgrown.push_back(home.directory.load());
      home.directory.store(larger, std::memory_order_release);
      home.room = room;
    }
    home.directory.load()[count] = chunk.release();
    home.chunks.store(count + 1, std::memory_order_release);
    home.first_unused = first;
  }

  const Kind kind_;
  const char* const type_;
  Shard shards_[kShards];
};

}  // namespace aclnn_cpu
