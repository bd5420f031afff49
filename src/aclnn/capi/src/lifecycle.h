// From load to exit: when operators are taken, what a fork does, and how the process ends without a crash.
//
// What a fork does. The child has one thread, and whatever another thread held or was about to finish stays as it was:
//
//   what                                            | over a fork
//   ------------------------------------------------|------------------------------------------------------------------
//   locks of the tables, of device memory, of what  | held while the process forks, so that the child finds them free and
//   checking remembers, of the list of streams, of  | what they guard whole; the child then forgets streams at work and
//   the mailboxes                                    | mailboxes, and the number of jobs and of visitors is 0
//   locks of single objects                         | set free in the child: under them nothing is written but addresses
//   streams, events, executors: a lock (and waits)  | never touched in the child: each knows that it was made before the
//   in each                                          | fork, and every function answers with a code and a sentence.
//                                                   | Destroying them works; default streams are made anew
//   mailbox: a lock and a wait in each              | forgotten, as are subscriptions; a callback that forks returns in
//                                                   | the child without looking at its mailbox
//   start of the engine, search for Python          | not held, for it takes seconds: a child that is born during or after
//                                                   | the start answers 561000; if the start has failed it is not tried
//                                                   | again, and the reason is read without a lock
//   tables, lists and default contexts that are     | all made when the library is loaded, so that no fork comes in the
//   made once                                        | middle of a first use
//   Python's lock, threads of kernels, remembered   | never asked for: the child does not enter the engine
//   plans, the engine in another process            |
//   phase of the exit, fork count, device and       | plain values, copied
//   context of a thread, messages of a thread       |
//
// At exit the engine closes in two steps. Draining: no new operator work is taken, workers finish what they have for a
// while. Closed: nobody enters the engine any more, and a worker that comes back rests for ever. The interpreter, the
// tables and their locks are never torn down, so destructors that run later can still destroy and free.
#pragma once

#include <chrono>

#include "errors.h"
#include "floats.h"

namespace aclnn_cpu {

enum class Phase { open, draining, closed };

Phase phase();

// How long an exit waits for queued work, altogether. The streams of Python have the same limit.
constexpr std::chrono::seconds kExitLimit(10);

// Why operators are not taken (after exit began, or in a forked child), or an ok outcome.
Outcome operators_are_taken();

// Begins the exit: drains the workers until the limit, then closes. Safe to call again.
extern "C" void aclnn_cpu_close_engine();

// Makes the exit hook run before the destructors of every library loaded so far. Called when the engine has planned
// something new, since that is when kernels bring their libraries in.
void register_exit_hook();

// Blocks for ever: where a worker goes once the engine is closed.
[[noreturn]] void rest();

// Grows with every fork, in the child.
unsigned fork_count();

// What has a lock or a worker of its own: after a fork they may be held by, or wait for, a thread of the parent.
class ForkMark {
 public:
  // Whether it was made before a fork, and is the parent's.
  bool is_orphan() const { return made_under_ != fork_count(); }

 private:
  const unsigned made_under_ = fork_count();
};

// Tells the lifecycle that there is an engine, or about to be one: a forked child cannot use it. And that there is none.
void engine_begins();
void engine_failed();

// The stay of one thread in the engine, with floating-point numbers as the standard has them. The exit waits for those
// inside before it goes on.
class Visit {
 public:
  Visit();
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  bool admitted() const { return admitted_; }

 private:
  DefaultFloats floats_;
  bool admitted_;
};

}  // namespace aclnn_cpu
