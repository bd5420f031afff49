// A kernel of native code that runs without Python: its block of arguments, filled in and called.
#pragma once

#include <cstdint>

#include "engine.h"
#include "small.h"

namespace aclnn_cpu {

// As capi/native.py writes it: this, the slots, the block. A word of the block is an address that was given, some bytes
// on; the workspace is address 0, and used from its first cache line on.
struct NativeCall {
  int64_t entry;     // void (*)(int64_t* block)
  int64_t parallel;  // GOMP_parallel
  int64_t threads;
  int64_t slots;
  int64_t block_words;

  void run(Words addresses) const {
    const auto* slot = reinterpret_cast<const Slot*>(this + 1);
    Small<64> block;  // of this run alone: another may be at work on other memory
    block.assign(reinterpret_cast<const int64_t*>(slot + slots), static_cast<size_t>(block_words));
    for (const Slot* end = slot + slots; slot != end; ++slot) {
      block.data()[slot->word] = slot->address == 0 ? next_line(addresses.data[0])
                                                    : addresses.data[1 + slot->address] + slot->offset;
    }
    call(block.data());
  }

 private:
  struct Slot {
    int64_t word, address, offset;
  };

  static int64_t next_line(int64_t address) { return (address + 63) / 64 * 64; }

  void call(int64_t* block) const {
    using Entry = void (*)(void*);
    using Parallel = void (*)(Entry, void*, unsigned, unsigned);
    if (threads == 1) reinterpret_cast<Entry>(entry)(block);
    else reinterpret_cast<Parallel>(parallel)(reinterpret_cast<Entry>(entry), block, static_cast<unsigned>(threads), 0);
  }
};

}  // namespace aclnn_cpu
