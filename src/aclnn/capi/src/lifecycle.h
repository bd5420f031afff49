// From load to exit: when operators are taken, what a fork does, and how the process ends without a crash.
//
// At exit the doors close in two steps. Draining: no new operator work is taken, workers finish what they have for a
// while. Closed: nobody enters the engine any more, and a worker that comes back rests for ever. The interpreter, the
// tables and their locks are never torn down, so destructors that run later can still destroy and free.
#pragma once

#include <chrono>

#include "errors.h"

namespace aclnn_cpu {

enum class Phase { open, draining, closed };

Phase phase();

// Why operators are not taken (after exit began, or in a forked child), or an ok outcome.
Outcome operators_are_taken();

// Begins the exit: drains the workers for a few seconds, then closes. Safe to call again.
extern "C" void aclnn_cpu_close_doors();

// Makes the exit hook run before the destructors of every library loaded so far. Called when the engine has planned
// something new, since that is when kernels bring their libraries in.
void register_exit_hook();

// Blocks for ever: where a worker goes once the doors are closed.
[[noreturn]] void rest();

// Grows with every fork, in the child. What has a worker remembers the number it was made under.
unsigned fork_count();

// Tells the lifecycle that there now is an engine, which a forked child cannot use.
void engine_started();

// The stay of one thread in the engine. The exit waits for those inside before it goes on.
class Visit {
 public:
  Visit();
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  bool admitted() const { return admitted_; }

 private:
  bool admitted_;
};

}  // namespace aclnn_cpu
