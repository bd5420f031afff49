#include "interpreter.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "process.h"
#include "recorded.h"

namespace aclnn_cpu {
namespace {

std::atomic<const Python*> published{nullptr};
std::mutex looking;

template <class Function>
bool look_up(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// Fills the table; the name of the first function that is missing, or null.
const char* fill(void* library, Python* python) {
#define NEED(member, name) \
  if (!look_up(library, name, &python->member)) return name
  NEED(is_initialized, "Py_IsInitialized");
  NEED(version, "Py_GetVersion");
  NEED(initialize, "Py_InitializeEx");
  NEED(set_program_name, "Py_SetProgramName");
  NEED(decode_locale, "Py_DecodeLocale");
  NEED(ensure, "PyGILState_Ensure");
  NEED(release, "PyGILState_Release");
  NEED(state_of_thread, "PyGILState_GetThisThreadState");
  NEED(save_thread, "PyEval_SaveThread");
  NEED(restore_thread, "PyEval_RestoreThread");
  NEED(import_module, "PyImport_ImportModule");
  NEED(attribute, "PyObject_GetAttrString");
  NEED(call, "PyObject_CallFunctionObjArgs");
  NEED(bytes, "PyBytes_FromStringAndSize");
  NEED(integer, "PyLong_FromLongLong");
  NEED(as_integer, "PyLong_AsLongLong");
  NEED(text, "PyUnicode_FromString");
  NEED(as_text, "PyUnicode_AsUTF8");
  NEED(item, "PyTuple_GetItem");
  NEED(length, "PyTuple_Size");
  NEED(sys_object, "PySys_GetObject");
  NEED(append, "PyList_Append");
  NEED(str, "PyObject_Str");
  NEED(fetch_error, "PyErr_Fetch");
  NEED(normalize_error, "PyErr_NormalizeException");
  NEED(clear_error, "PyErr_Clear");
  NEED(incref, "Py_IncRef");
  NEED(decref, "Py_DecRef");
#undef NEED
  if (look_up(library, "PyThreadState_GetUnchecked", &python->state_that_runs)) return nullptr;
  return look_up(library, "_PyThreadState_UncheckedGet", &python->state_that_runs) ? nullptr
                                                                                   : "PyThreadState_GetUnchecked";
}

int collect_libpython(dl_phdr_info* info, size_t, void* names) {
  const char* file = std::strrchr(info->dlpi_name, '/');
  if (file != nullptr && std::strncmp(file, "/libpython", 10) == 0) {
    static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  }
  return 0;
}

// The Python that is loaded: part of the program, global, or loaded for someone else alone (and made global here).
void* loaded_python() {
  void* program = dlopen(nullptr, RTLD_NOW);
  if (program != nullptr && dlsym(program, "Py_IsInitialized") != nullptr) return program;
  std::vector<std::string> names;
  dl_iterate_phdr(collect_libpython, &names);
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    if (library != nullptr && dlsym(library, "Py_IsInitialized") != nullptr) return library;
  }
  return nullptr;
}

Outcome refusal(const std::string& sentence) { return {ACLNN_ERR_INNER, sentence}; }

const Python* publish(void* library, Outcome* reason) {
  auto* made = new Python;
  const char* missing = fill(library, made);
  if (missing == nullptr) {
    published.store(made);
    return made;
  }
  delete made;
  *reason = refusal(std::string("this Python has no ") + missing + "; versions 3.10 to 3.13 do.");
  return nullptr;
}

Environment recorded() {
  return {ACLNN_CPU_PYTHON_VERSION, ACLNN_CPU_PYTHON, ACLNN_CPU_LIBPYTHON, ACLNN_CPU_STDLIB, ACLNN_CPU_ROOTS};
}

// What the Python named by ACLNN_PYTHON says about itself.
bool described(const char* executable, Environment* environment, Outcome* reason) {
  std::string output;
  const char* program = "from aclnn.capi.interpreter import describe; describe()";
  const bool ran = run_program({executable, "-E", "-c", program}, &output);
  std::string* const fields[] = {&environment->version, &environment->executable, &environment->library,
                                 &environment->stdlib, &environment->roots};
  size_t start = 0;
  for (std::string* field : fields) {
    const size_t end = output.find('\n', start);
    if (!ran || end == std::string::npos) {
      *reason = refusal(std::string("ACLNN_PYTHON is ") + executable +
                        ", which is no Python with aclnn-cpu installed; it must be one.");
      return false;
    }
    *field = output.substr(start, end - start);
    start = end + 1;
  }
  return true;
}

bool find_environment(Environment* environment, Outcome* reason) {
  const char* chosen = std::getenv("ACLNN_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return described(chosen, environment, reason);
  *environment = recorded();
  return true;
}

// Python ends the process when it cannot find its own library, so what it needs is looked for first.
bool is_whole(const Environment& environment, Outcome* reason) {
  const std::string remedy = "; if it has moved, say where with ACLNN_PYTHON or build again with `aclnn flags`.";
  if (access(environment.executable.c_str(), X_OK) != 0) {
    *reason = refusal("the Python this library was built for is gone: " + environment.executable + remedy);
  } else if (environment.library.empty() || access(environment.library.c_str(), R_OK) != 0) {
    *reason = refusal("there is no shared libpython" + environment.version + " (" + environment.library +
                      "); on Debian and Ubuntu it comes with the package libpython" + environment.version + ".");
  } else if (access((environment.stdlib + "/encodings/__init__.py").c_str(), R_OK) != 0) {
    *reason = refusal("the standard library of Python is gone: " + environment.stdlib + remedy);
  } else {
    return true;
  }
  return false;
}

void set_flag(void* library, const char* name) {
  if (int* flag = static_cast<int*>(dlsym(library, name))) *flag = 1;
}

// Starts Python as the environment's own, leaving signal handlers, standard streams and the locale as they were.
void start(void* library, const Python& python, const Environment& environment) {
  set_flag(library, "Py_IgnoreEnvironmentFlag");
  set_flag(library, "Py_NoUserSiteDirectory");
  set_flag(library, "Py_UTF8Mode");
  const std::string locale = std::setlocale(LC_CTYPE, nullptr);
  static const wchar_t* const name = python.decode_locale(environment.executable.c_str(), nullptr);  // Python keeps it
  python.set_program_name(name);
  python.initialize(0);
  std::setlocale(LC_CTYPE, locale.c_str());
}

bool has_version(const Python& python, const std::string& version) {
  return std::strncmp(python.version(), (version + ".").c_str(), version.size() + 1) == 0;
}

// The state a thread keeps between its calls.
thread_local void* kept_state = nullptr;
thread_local int kept_since = 0;
thread_local bool started_python = false;
thread_local bool thread_is_ending = false;

struct Keeper {
  ~Keeper() {
    thread_is_ending = true;
    Visit visit;
    if (kept_state == nullptr || !visit.admitted()) return;
    const Python& py = *python();
    py.restore_thread(kept_state);
    py.release(kept_since);
    kept_state = nullptr;
  }
};

void keep_thread_state(const Python& py) {
  if (thread_is_ending || py.state_of_thread() != nullptr) return;
  static thread_local Keeper keeper;
  (void)keeper;
  kept_since = py.ensure();
  kept_state = py.save_thread();
}

}  // namespace

const Python* python() { return published.load(std::memory_order_acquire); }

void look_for_python() {
  std::lock_guard<std::mutex> hold(looking);
  if (python() != nullptr) return;
  void* library = loaded_python();
  Outcome ignored;
  if (library != nullptr) publish(library, &ignored);
}

const Python* find_or_start(bool* started, Environment* environment, Outcome* reason) {
  *started = false;
  if (!find_environment(environment, reason)) return nullptr;
  const Python* found = python();
  if (has_another_python(*environment)) {
    const std::string full = found->version();
    *reason = refusal("the process already has Python " + full.substr(0, full.find(' ')) +
                      ", but this library was built for Python " + environment->version + "; both must be the same.");
    return nullptr;
  }
  if (found != nullptr && found->is_initialized()) return found;
  if (!is_whole(*environment, reason)) return nullptr;
  void* library = dlopen(environment->library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    *reason = refusal(std::string("libpython cannot be loaded: ") + dlerror() + ".");
    return nullptr;
  }
  found = found != nullptr ? found : publish(library, reason);
  if (found == nullptr) return nullptr;
  start(library, *found, *environment);
  *started = started_python = true;
  return found;
}

bool has_another_python(const Environment& environment) {
  return python() != nullptr && !has_version(*python(), environment.version);
}

bool holds_interpreter_lock() {
  const Python* py = python();
  if (py == nullptr || !py->is_initialized()) return false;
  void* mine = py->state_of_thread();
  return mine != nullptr && py->state_that_runs() == mine;
}

bool is_thread_of_python() {
  const Python* py = python();
  return py != nullptr && kept_state == nullptr && !started_python && py->state_of_thread() != nullptr;
}

InterpreterLock::InterpreterLock() {
  if (!visit_.admitted()) return;
  keep_thread_state(*python());
  state_ = python()->ensure();
}

InterpreterLock::~InterpreterLock() {
  if (visit_.admitted() && holds_interpreter_lock()) python()->release(state_);
}

WithoutInterpreterLock::WithoutInterpreterLock() {
  if (holds_interpreter_lock()) state_ = python()->save_thread();
}

WithoutInterpreterLock::~WithoutInterpreterLock() {
  if (state_ != nullptr) python()->restore_thread(state_);
}

}  // namespace aclnn_cpu
