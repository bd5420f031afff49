// The default engine: aclnn.capi.engine in the Python of this process.
#include <algorithm>
#include <atomic>
#include <memory>

#include "engine.h"
#include "interpreter.h"
#include "lifecycle.h"
#include "native_call.h"
#include "plan_memory.h"
#include "recorded.h"

namespace aclnn_cpu {
namespace {

// Only the engine knows this number: an answer without it is none.
constexpr long long kComputed = 0x61636C6E6E;

// The functions of engine.py.
struct EngineEntry {
  Object* plan;
  Object* own;
  Object* check;
  Object* run;
};
EngineEntry entry;

const char kModule[] = "aclnn.capi.engine";

// A reference that is given back.
class Owned {
 public:
  explicit Owned(Object* object) : object_(object) {}
  ~Owned() {
    if (object_ != nullptr && holds_interpreter_lock()) python()->decref(object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Object* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Object* object_;
};

// What Python says went wrong, and clears it.
std::string error_text() {
  const Python& py = *python();
  Object *type = nullptr, *value = nullptr, *trace = nullptr;
  py.fetch_error(&type, &value, &trace);
  py.normalize_error(&type, &value, &trace);
  const Owned owned_type(type), owned_value(value), owned_trace(trace);
  const Owned text(value == nullptr ? nullptr : py.str(value));
  const char* said = text ? py.as_text(text.get()) : nullptr;
  std::string result = said == nullptr ? "an error without a text" : said;
  py.clear_error();
  return result;
}

Outcome no_answer(const std::string& why) { return {ACLNN_ERR_INNER, "the engine did not answer: " + why + "."}; }

// Reads an answer that is not a success: (code, sentence).
Outcome refusal(Object* answer) {
  const Python& py = *python();
  py.clear_error();
  Object* code = py.item(answer, 0);
  Object* sentence = code == nullptr ? nullptr : py.item(answer, 1);
  const char* text = sentence == nullptr ? nullptr : py.as_text(sentence);
  const long long number = text == nullptr ? 0 : py.as_integer(code);
  if (number <= 0) return no_answer(text == nullptr ? error_text() : "it refused without a code");
  return {static_cast<int>(number), text};
}

// A number in a tuple; −1 where there is none.
long long integer_at(Object* tuple, ssize_t place) {
  Object* item = python()->item(tuple, place);
  return item == nullptr ? -1 : python()->as_integer(item);
}

// Gives a reference back from wherever the last user of an object is. Nothing is left to do when the engine is closed.
void give_back(Object* object) {
  if (object == nullptr) return;
  const InterpreterLock lock;
  if (lock.held()) python()->decref(object);
}

Object* bytes_of(Words words) {
  return python()->bytes(reinterpret_cast<const char*>(words.data),
                         static_cast<ssize_t>(words.count * sizeof(int64_t)));
}

// Calls a function that answers with the number when it has done what was asked.
Outcome ask(Object* function, void* executor, Words addresses) {
  const Python& py = *python();
  const Owned words(bytes_of(addresses));
  const Owned answer(words ? py.call(function, executor, words.get(), nullptr) : nullptr);
  if (!answer) return no_answer(error_text());
  return py.as_integer(answer.get()) == kComputed ? Outcome{} : refusal(answer.get());
}

// A planned call, shared by its executors and remembered under its signature.
class Plan {
 public:
  // Takes over a reference to what the engine planned.
  explicit Plan(Object* planned) : planned_(planned) {}
  ~Plan() { give_back(planned_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  Object* planned() const { return planned_; }

  uint64_t workspace_size = 0;
  By by = By::worker;
  const NativeCall* native = nullptr;  // belongs to what was planned

 private:
  Object* const planned_;
};

struct PythonExecutor {
  std::shared_ptr<const Plan> plan;
  Object* run = nullptr;  // of its own, once it has run and may run again
  ~PythonExecutor() { give_back(run); }
};

PlanMemory<Plan>& plans = *new PlanMemory<Plan>;  // never destroyed: threads may be at work while the process exits
const std::atomic<int64_t>* ever_in_a_context = nullptr;

Outcome plan_anew(Words signature, std::shared_ptr<const Plan>* made, bool* is_new) {
  const InterpreterLock lock;
  if (!lock.held()) return operators_are_taken();
  const Python& py = *python();
  const Owned words(bytes_of(signature));
  const Owned answer(words ? py.call(entry.plan, words.get(), nullptr) : nullptr);
  if (!answer) return no_answer(error_text());
  if (py.length(answer.get()) != 6 || integer_at(answer.get(), 0) != kComputed) return refusal(answer.get());
  Object* planned = py.item(answer.get(), 1);
  py.incref(planned);
  const auto plan = std::make_shared<Plan>(planned);
  plan->workspace_size = static_cast<uint64_t>(integer_at(answer.get(), 2));
  *is_new = integer_at(answer.get(), 3) != 0;
  plan->native = reinterpret_cast<const NativeCall*>(integer_at(answer.get(), 4));
  plan->by = static_cast<By>(integer_at(answer.get(), 5));
  *made = plan;
  return {};
}

// Without Python where the like was seen. Contexts of Python (`with aclnn.product(…)`) change what a signature means, and
// only Python knows which one a thread is in: a process where there ever was one asks each time.
Outcome plan(Words signature, Planned* planned) {
  auto executor = std::make_unique<PythonExecutor>();
  const bool is_remembered = ever_in_a_context->load(std::memory_order_relaxed) == 0;
  if (is_remembered) executor->plan = plans.find(signature);
  if (!executor->plan) {
    const Outcome outcome = plan_anew(signature, &executor->plan, &planned->is_new);
    if (!outcome.ok()) return outcome;
    if (is_remembered && ever_in_a_context->load() == 0) plans.remember(signature, executor->plan);
  }
  planned->workspace_size = executor->plan->workspace_size;
  planned->by = executor->plan->by;
  planned->executor = executor.release();
  return {};
}

Outcome set_address(void* executor, Words addresses) {
  const InterpreterLock lock;
  if (!lock.held()) return operators_are_taken();
  return ask(entry.check, static_cast<PythonExecutor*>(executor)->plan->planned(), addresses);
}

// An executor that runs again has a run of its own, which other calls of the like never take away.
Outcome make_own_run(PythonExecutor* executor) {
  const Python& py = *python();
  const Owned answer(py.call(entry.own, executor->plan->planned(), nullptr));
  if (!answer) return no_answer(error_text());
  if (integer_at(answer.get(), 0) != kComputed) return refusal(answer.get());
  executor->run = py.item(answer.get(), 1);
  py.incref(executor->run);
  return {};
}

Outcome run_in_python(PythonExecutor* executor, Words addresses, bool last) {
  const InterpreterLock lock;
  if (!lock.held()) return operators_are_taken();
  if (!last && executor->run == nullptr) {
    const Outcome outcome = make_own_run(executor);
    if (!outcome.ok()) return outcome;
  }
  return ask(entry.run, executor->run != nullptr ? executor->run : executor->plan->planned(), addresses);
}

Outcome run(void* given, Words addresses, bool last) {
  auto* executor = static_cast<PythonExecutor*>(given);
  const std::unique_ptr<PythonExecutor> ends_here(last ? executor : nullptr);
  const NativeCall* native = executor->plan->native;
  if (native != nullptr && native->run(addresses)) return {};
  return run_in_python(executor, addresses, last);
}

void destroy(void* executor) { delete static_cast<PythonExecutor*>(executor); }

// Python calls it to get back memory. What executors still use stays with them.
extern "C" void aclnn_cpu_forget_plans() { plans.forget(); }

const Engine kPythonEngine = {plan, set_address, run, destroy};

// Makes the environment's own packages visible to a Python that was started by someone else.
void add_roots(const std::string& roots) {
  const Python& py = *python();
  Object* path = py.sys_object("path");
  for (size_t start = 0; path != nullptr && start < roots.size();) {
    const size_t end = std::min(roots.find(':', start), roots.size());
    const Owned root(py.text(roots.substr(start, end - start).c_str()));
    if (root) py.append(path, root.get());
    start = end + 1;
  }
  py.clear_error();
}

bool find_entry(Object* module) {
  const Python& py = *python();
  entry = {py.attribute(module, "plan"), py.attribute(module, "own"), py.attribute(module, "check"),
           py.attribute(module, "run")};
  return entry.plan != nullptr && entry.own != nullptr && entry.check != nullptr && entry.run != nullptr;
}

Outcome connect(const Environment& environment) {
  const Python& py = *python();
  Object* module = py.import_module(kModule);
  if (module == nullptr) {
    py.clear_error();
    add_roots(environment.roots);
    module = py.import_module(kModule);
  }
  if (module == nullptr) {
    return {ACLNN_ERR_INNER, "Python " + environment.version + " cannot load the engine: " + error_text() + "."};
  }
  const Owned start(py.attribute(module, "start"));
  const Owned contracts(py.text(ACLNN_CPU_CONTRACTS));
  const Owned close(py.integer(reinterpret_cast<long long>(&aclnn_cpu_close_engine)));
  const Owned forget(py.integer(reinterpret_cast<long long>(&aclnn_cpu_forget_plans)));
  const Owned answer(start ? py.call(start.get(), contracts.get(), close.get(), forget.get(), nullptr) : nullptr);
  if (!answer) return no_answer(error_text());
  if (integer_at(answer.get(), 0) != kComputed) return refusal(answer.get());
  ever_in_a_context = reinterpret_cast<const std::atomic<int64_t>*>(integer_at(answer.get(), 1));
  return find_entry(module) ? Outcome{} : no_answer(error_text());
}

}  // namespace

const Engine* start_python(Outcome* reason) {
  bool started = false;
  Environment environment;
  if (find_or_start(&started, &environment, reason) == nullptr) {
    return has_another_python(environment) ? start_remote(environment, reason) : nullptr;
  }
  if (started) {
    *reason = connect(environment);
    python()->save_thread();  // from here on, everyone takes the lock when it is needed
  } else {
    const InterpreterLock lock;
    *reason = lock.held() ? connect(environment) : operators_are_taken();
  }
  return reason->ok() ? &kPythonEngine : nullptr;
}

}  // namespace aclnn_cpu
