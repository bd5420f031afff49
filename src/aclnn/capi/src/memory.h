// Device and pinned host memory: ordinary memory, entered in a book so that it can be recognised.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace aclnn_cpu {

enum class Place { device, host };

struct Block {
  char* start = nullptr;
  size_t size = 0;
  Place place = Place::device;
  void* call_site = nullptr;
};

// The block an address lies in (one past the end does not); false when the book has none.
bool find_block(const void* address, Block* block);

std::vector<Block> live_blocks();

std::mutex& memory_lock();

}  // namespace aclnn_cpu
