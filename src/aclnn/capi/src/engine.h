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

// Who runs a job: the stream's worker, or also a thread that waits for it, or also the one that brings it. Only short work
// that waits for nobody, wakes no threads and calls nothing of the program is for others than the worker; what takes
// less time than to queue it is done at once if nothing is queued before it.
enum class By { worker, anyone, bringer };

struct Planned {
  void* executor = nullptr;  // the engine's own
  uint64_t workspace_size = 0;
  bool is_new = false;  // planned now, not remembered: libraries may have been loaded for it
  By by = By::worker;
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
