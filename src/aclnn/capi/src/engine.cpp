#include "engine.h"

#include <atomic>
#include <mutex>

#include "interpreter.h"
#include "lifecycle.h"

namespace aclnn_cpu {
namespace {

std::atomic<const Engine*> replacement{nullptr};
std::atomic<const Engine*> python_engine{nullptr};

// Starting takes long and happens once, whether it works or not: Python cannot be started a second time.
struct Start {
  std::mutex lock;
  bool tried = false;
  Outcome reason;
};

const Engine* start_once(Outcome* reason) {
  static auto* start = new Start;
  look_for_python();
  WithoutInterpreterLock let_another_thread_finish_starting;
  std::lock_guard<std::mutex> hold(start->lock);
  if (!start->tried) {
    start->tried = true;
    python_engine.store(start_python(&start->reason));
    if (python_engine.load() != nullptr) {
      engine_started();
      register_exit_hook();
    }
  }
  *reason = start->reason;
  return python_engine.load();
}

}  // namespace

const Engine* engine(Outcome* reason) {
  if (const Engine* other = replacement.load(std::memory_order_acquire)) {
    engine_started();
    return other;
  }
  if (const Engine* started = python_engine.load(std::memory_order_acquire)) return started;
  return start_once(reason);
}

}  // namespace aclnn_cpu

extern "C" void aclnn_cpu_use_engine(const aclnn_cpu::Engine* engine) {
  aclnn_cpu::replacement.store(engine);
  if (engine != nullptr) aclnn_cpu::register_exit_hook();
}
