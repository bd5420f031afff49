// What the threads of the fuzzer share.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

// Handles that threads leave for each other: alive, dead or never alive, and without memory behind them.
struct Shared {
  std::mutex mutex, memory;
  std::vector<const void*> handles = {nullptr, reinterpret_cast<void*>(8), reinterpret_cast<void*>(-1), this};

  std::vector<const void*> some() {
    std::lock_guard<std::mutex> hold(mutex);
    return handles;
  }
  void leave(const void* handle) {
    std::lock_guard<std::mutex> hold(mutex);
    if (handles.size() < 64) handles.push_back(handle);
    else handles[static_cast<size_t>(reinterpret_cast<uintptr_t>(handle) % 60) + 4] = handle;
  }
};
