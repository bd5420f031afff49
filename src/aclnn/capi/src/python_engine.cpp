// The default engine: aclnn.capi.engine in the Python of this process.
#include <cstring>

#include "engine.h"
#include "interpreter.h"
#include "lifecycle.h"
#include "recorded.h"

namespace aclnn_cpu {
namespace {

// Only the engine knows this number: an answer without it is none.
constexpr long long kComputed = 0x61636C6E6E;

struct Functions {
  Object* plan;
  Object* check;
  Object* run;
};
Functions functions;

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

Outcome closed() { return {ACLNN_ERR_INNER, "the process is exiting; operators are no longer taken."}; }

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

Outcome plan(Words signature, Planned* planned) {
  const InterpreterLock lock;
  if (!lock.held()) return closed();
  const Python& py = *python();
  const Owned words(bytes_of(signature));
  const Owned answer(words ? py.call(functions.plan, words.get(), nullptr) : nullptr);
  if (!answer) return no_answer(error_text());
  if (py.length(answer.get()) != 4 || py.as_integer(py.item(answer.get(), 0)) != kComputed) return refusal(answer.get());
  planned->executor = py.item(answer.get(), 1);
  py.incref(planned->executor);
  planned->workspace_size = static_cast<uint64_t>(py.as_integer(py.item(answer.get(), 2)));
  planned->is_new = py.as_integer(py.item(answer.get(), 3)) != 0;
  return {};
}

Outcome set_address(void* executor, Words addresses) {
  const InterpreterLock lock;
  return lock.held() ? ask(functions.check, executor, addresses) : closed();
}

Outcome run(void* executor, Words addresses, bool last) {
  const InterpreterLock lock;
  if (!lock.held()) return closed();
  Outcome outcome = ask(functions.run, executor, addresses);
  if (last) python()->decref(executor);
  return outcome;
}

void destroy(void* executor) {
  const InterpreterLock lock;
  if (lock.held()) python()->decref(executor);
}

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

bool find_functions(Object* module) {
  const Python& py = *python();
  functions = {py.attribute(module, "plan"), py.attribute(module, "check"), py.attribute(module, "run")};
  return functions.plan != nullptr && functions.check != nullptr && functions.run != nullptr;
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
  const Owned close(py.integer(reinterpret_cast<long long>(&aclnn_cpu_close_doors)));
  const Owned answer(start ? py.call(start.get(), contracts.get(), close.get(), nullptr) : nullptr);
  if (!answer) return no_answer(error_text());
  if (py.as_integer(answer.get()) != kComputed) return refusal(answer.get());
  return find_functions(module) ? Outcome{} : no_answer(error_text());
}

}  // namespace

const Engine* start_python(Outcome* reason) {
  bool started = false;
  Environment environment;
  if (find_or_start(&started, &environment, reason) == nullptr) return nullptr;
  if (started) {
    *reason = connect(environment);
    python()->save_thread();  // from here on, everyone takes the lock when it is needed
  } else {
    const InterpreterLock lock;
    *reason = lock.held() ? connect(environment) : closed();
  }
  return reason->ok() ? &kPythonEngine : nullptr;
}

}  // namespace aclnn_cpu
