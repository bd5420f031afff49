#include "check.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "object_tables.h"

namespace aclnn_cpu {
namespace {

// What checking remembers. Never destroyed, like everything that outlives main.
struct Memory {
  std::mutex lock;
  std::set<const InUse*> in_use;
  std::array<const void*, 1024> executors_that_ran{};  // the latest
  size_t runs = 0;
};

Memory& memory() {
  static auto* made = new Memory;
  return *made;
}

std::string readable(const char* symbol) {
  char* plain = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  std::string name = plain != nullptr ? plain : symbol;
  std::free(plain);
  return name;
}

// `program+0x1234`, as `addr2line -e program 0x1234` takes it, and the function if it has a name.
std::string place_of(const void* code) {
  Dl_info info;
  if (code == nullptr || dladdr(code, &info) == 0 || info.dli_fname == nullptr) return "an unknown place";
  char offset[32];
  const auto distance = static_cast<const char*>(code) - static_cast<const char*>(info.dli_fbase);
  std::snprintf(offset, sizeof offset, "+0x%zx", static_cast<size_t>(distance));
  const std::string place = info.dli_fname + std::string(offset);
  return info.dli_sname == nullptr ? place : readable(info.dli_sname) + " (" + place + ")";
}

void report_alive(const Alive& alive) {
  std::map<const void*, size_t> by_call_site;
  for (const void* call_site : alive.call_sites) ++by_call_site[call_site];
  for (const auto& [call_site, count] : by_call_site) {
    say(std::to_string(count) + " " + alive.type + " made at " + place_of(call_site) + " " +
        (count == 1 ? "was" : "were") + " not destroyed before aclFinalize.");
  }
}

}  // namespace

bool checking() {
  enum : int { unknown, off, on };
  static std::atomic<int> known{unknown};  // asked when first needed: a program may set the variable itself
  if (known.load(std::memory_order_relaxed) == unknown) {
    const char* value = std::getenv("ACLNN_CHECK");
    known.store(value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0 ? on : off);
  }
  return known.load(std::memory_order_relaxed) == on;
}

std::mutex& check_lock() { return memory().lock; }

void report_host_pointer(const std::string& who, const std::string& argument, const void* pointer) {
  Block block;
  if (find_block(pointer, &block) && block.place == Place::device) return;
  say(who + ": " + argument + " is " + text_of(pointer) +
      ", which is no device memory; it works here, hardware would fail.");
}

Outcome check_reach(const std::string& op, const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    Block block;
    if (!find_block(use.low, &block)) {
      report_host_pointer(op, use.name, use.low);
    } else if (use.high > block.start + block.size) {
      Outcome outcome = {ACLNN_ERR_PARAM_INVALID,
                         op + ": " + use.name + " reaches " +
                             text_of(static_cast<size_t>(use.high - block.start - block.size)) +
                             " bytes beyond its allocation of " + text_of(block.size) + " bytes."};
      say(outcome.sentence);
      return outcome;
    } else if (block.place == Place::host) {
      report_host_pointer(op, use.name, use.low);
    }
  }
  return {};
}

InUse::InUse(std::string op, std::vector<Use> uses) : op_(std::move(op)), uses_(std::move(uses)) {
  std::lock_guard<std::mutex> hold(check_lock());
  memory().in_use.insert(this);
}

InUse::~InUse() {
  std::lock_guard<std::mutex> hold(check_lock());
  memory().in_use.erase(this);
}

void check_free(const char* function, const Block& block) {
  if (!checking()) return;
  const char* end = block.start + block.size;
  std::lock_guard<std::mutex> hold(check_lock());
  for (const InUse* work : memory().in_use) {
    for (const Use& use : work->uses_) {
      if (use.low >= end || use.high <= block.start) continue;
      say(std::string(function) + ": " + work->op_ + " still needs this memory for " + use.name +
          "; synchronize its stream before freeing it.");
      return;
    }
  }
}

void remember_run(const void* executor) {
  if (!checking()) return;
  std::lock_guard<std::mutex> hold(check_lock());
  auto& ran = memory().executors_that_ran;
  ran[memory().runs++ % ran.size()] = executor;
}

bool has_run(const void* executor) {
  if (!checking()) return false;
  std::lock_guard<std::mutex> hold(check_lock());
  const auto& ran = memory().executors_that_ran;
  return std::find(ran.begin(), ran.end(), executor) != ran.end();
}

void report_leaks() {
  if (!checking()) return;
  for (const Alive& alive : alive_objects()) report_alive(alive);
  for (const Block& block : live_blocks()) {
    const char* kind = block.place == Place::device ? "device" : "host";
    say(text_of(block.size) + " bytes of " + kind + " memory allocated at " + place_of(block.call_site) +
        " were not freed before aclFinalize.");
  }
}

}  // namespace aclnn_cpu
