#include "engine.h"

#include <atomic>
#include <memory>
#include <mutex>

#include "interpreter.h"
#include "lifecycle.h"

namespace aclnn_cpu {
namespace {

std::atomic<const Engine*> replacement{nullptr};
std::atomic<const Engine*> python_engine{nullptr};

// Starting takes long and happens once, whether it works or not: Python cannot be started a second time. Why it did not
// work is read without the lock, which a thread of the parent may hold in a forked child.
std::mutex starting;
std::atomic<const Outcome*> why_not{nullptr};

void start() {
  const DefaultFloats floats;
  auto reason = std::make_unique<Outcome>();
  python_engine.store(start_python(reason.get()));
  if (python_engine.load() == nullptr) why_not.store(reason.release());  // for good
  else register_exit_hook();
}

const Engine* start_once(Outcome* reason) {
  if (why_not.load() == nullptr) {
    engine_begins();
    look_for_python();
    WithoutInterpreterLock let_another_thread_finish_starting;
    std::lock_guard<std::mutex> hold(starting);
    if (python_engine.load() == nullptr && why_not.load() == nullptr) start();
    if (why_not.load() != nullptr) engine_failed();
  }
  if (const Outcome* known = why_not.load()) *reason = *known;
  return python_engine.load();
}

}  // namespace

const Engine* engine(Outcome* reason) {
  if (const Engine* other = replacement.load(std::memory_order_acquire)) {
    engine_begins();
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
