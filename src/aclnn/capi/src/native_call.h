// Native code that runs without Python: launches one after the other, their blocks of arguments filled in.
#pragma once

#include <cstdint>

#include "engine.h"
#include "short_vector.h"

namespace aclnn_cpu {

// As capi/native.py writes it: this, then for every launch its head, its slots and its block.
class NativeCall {
 public:
  // False if the kernels met what they are not made for: another must compute it all.
  bool run(Words addresses) const {
    int64_t finding[2] = {0, 0};  // what kernels met, and how many shares of a launch are taken
    const auto* head = reinterpret_cast<const Head*>(this + 1);
    for (int64_t i = 0; i < launches_ && finding[0] == 0; ++i) {
      const auto* slot = reinterpret_cast<const Slot*>(head + 1);
      const auto* words = reinterpret_cast<const int64_t*>(slot + head->slots);
      Small<64> block;  // of this run alone: another may be at work on other memory
      block.assign(words, static_cast<size_t>(head->block_words));
      for (const Slot* end = slot + head->slots; slot != end; ++slot) {
        block.data()[slot->word] = place(slot->which, addresses, finding) + slot->offset;
      }
      finding[1] = 0;
      launch(*head, block.data());
      head = reinterpret_cast<const Head*>(words + head->block_words);
    }
    return finding[0] == 0;
  }

 private:
  struct Head {
    int64_t entry;  // void (*)(int64_t* block)
    int64_t threads;
    int64_t slots;
    int64_t block_words;
  };
  struct Slot {
    int64_t word, which, offset;
  };
  static constexpr int64_t kFinding = -1, kWorkspace = 0;

  static int64_t place(int64_t which, Words addresses, int64_t* finding) {
    if (which == kFinding) return reinterpret_cast<int64_t>(finding);
    if (which == kWorkspace) return (addresses.data[0] + 63) / 64 * 64;  // used from its first cache line on
    return addresses.data[1 + which];
  }

  void launch(const Head& head, int64_t* block) const {
    using Entry = void (*)(void*);
    using Parallel = void (*)(Entry, void*, unsigned, unsigned);
    const auto entry = reinterpret_cast<Entry>(head.entry);
    if (head.threads == 1) entry(block);
    else reinterpret_cast<Parallel>(parallel_)(entry, block, static_cast<unsigned>(head.threads), 0);
  }

  int64_t launches_;
  int64_t parallel_;  // GOMP_parallel
};

}  // namespace aclnn_cpu
