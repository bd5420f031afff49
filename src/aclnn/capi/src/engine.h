// The engine behind the operators: four functions. The default one is Python; tests put one of their own here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "errors.h"

namespace aclnn_cpu {

struct Words {
  const int64_t* data;
  size_t count;
};

struct Planned {
  void* executor = nullptr;  // the engine's own
  uint64_t workspace_size = 0;
  bool is_new = false;  // planned now, not remembered: libraries may have been loaded for it
  bool any_thread = false;  // a run wakes no threads of its own: whoever waits for it may as well do it
};

// Signature: the operator's number, then its arguments in order, as planning.cpp writes them; all that phase 1 depends
// on. Addresses: the workspace and its size, then one address per tensor in the order of the arguments, lists spread out
// (0 for a null one). Functions are called from any thread, and `run` for one executor from one thread at a time.
struct Engine {
  Outcome (*plan)(Words signature, Planned* planned);
  Outcome (*set_address)(void* executor, Words addresses);  // may work run on these addresses?
  Outcome (*run)(void* executor, Words addresses, bool last);  // last: destroys the executor too
  void (*destroy)(void* executor);
};

// The engine, started on first use; null, with the reason, if there is none.
const Engine* engine(Outcome* reason);

// The Python engine: starts the interpreter, or joins the one that is here.
const Engine* start_python(Outcome* reason);

// The same in a process of its own, where another version of Python is here; the reason says so already if it fails.
struct Environment;
const Engine* start_remote(const Environment& environment, Outcome* reason);

}  // namespace aclnn_cpu

// Replaces the engine for what is planned from now on; null brings Python back.
extern "C" ACLNN_CPU_API void aclnn_cpu_use_engine(const aclnn_cpu::Engine* engine);
