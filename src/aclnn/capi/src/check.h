// ACLNN_CHECK=1: what hardware would not forgive, each with one plain sentence on stderr.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "errors.h"
#include "memory.h"

namespace aclnn_cpu {

bool checking();

// The lock of what checking remembers, for a fork to hold.
std::mutex& check_lock();

// Memory that work uses, with its name for a sentence.
struct Use {
  const char* low;
  const char* high;  // one past the last byte
  std::string name;
};

// A host pointer where device memory is due: reported, since the copy works here.
void report_host_pointer(const std::string& who, const std::string& argument, const void* pointer);

// Memory that work is about to use: each piece inside one device allocation (else 161002), or reported as host memory.
Outcome check_reach(const std::string& op, const std::vector<Use>& uses);

// While one of these lives, queued work uses the memory: whoever frees it is reported.
class InUse {
 public:
  InUse(std::string op, std::vector<Use> uses);
  ~InUse();
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  friend void check_free(const char* function, const Block& block);
  std::string op_;
  std::vector<Use> uses_;
};

void check_free(const char* function, const Block& block);

// Executors that have run, the latest of them: a second run is answered with that reason.
void remember_run(const void* executor);
bool has_run(const void* executor);

// Everything that is alive, with the place that made it.
void report_leaks();

}  // namespace aclnn_cpu
