// The Python in this process: the few functions of its C interface that are needed, looked up by name so that one
// library serves every version, and its lock.
#pragma once

#include <string>

#include "errors.h"
#include "lifecycle.h"

namespace aclnn_cpu {

using Object = void;  // PyObject

struct Python {
  int (*is_initialized)();
  const char* (*version)();
  void (*initialize)(int);
  void (*set_program_name)(const wchar_t*);
  wchar_t* (*decode_locale)(const char*, size_t*);
  int (*ensure)();
  void (*release)(int);
  void* (*state_of_thread)();
  void* (*state_that_runs)();
  void* (*save_thread)();
  void (*restore_thread)(void*);
  Object* (*import_module)(const char*);
  Object* (*attribute)(Object*, const char*);
  Object* (*call)(Object*, ...);  // ends with a null
  Object* (*bytes)(const char*, ssize_t);
  Object* (*integer)(long long);
  long long (*as_integer)(Object*);
  Object* (*text)(const char*);
  const char* (*as_text)(Object*);
  Object* (*item)(Object*, ssize_t);
  ssize_t (*length)(Object*);
  Object* (*sys_object)(const char*);
  int (*append)(Object*, Object*);
  Object* (*str)(Object*);
  void (*fetch_error)(Object**, Object**, Object**);
  void (*normalize_error)(Object**, Object**, Object**);
  void (*clear_error)();
  void (*incref)(Object*);
  void (*decref)(Object*);
};

// A Python environment, as recorded when the library was built or as the one named by ACLNN_PYTHON describes itself.
struct Environment {
  std::string version;     // 3.11
  std::string executable;  // of the environment, from which Python finds everything else
  std::string library;     // libpython, by absolute path
  std::string stdlib;
  std::string roots;  // folders with the packages the engine needs, separated by colons
};

// Publishes the Python that is already running in this process, if there is one.
void look_for_python();

// The Python of this process, running or not yet; null before anyone looked.
const Python* python();

// Finds Python or starts it; null, with the reason, if neither works. If `started` then the caller holds its lock.
const Python* find_or_start(bool* started, Environment* environment, Outcome* reason);

// Whether the process has a Python inside that is not of this environment's version.
bool has_another_python(const Environment& environment);

// Whether the calling thread holds Python's lock. One that Python ends while it takes itself apart does not, and its
// destructors must leave Python alone.
bool holds_interpreter_lock();

// Holds Python's lock, if the engine is open. A thread without a Python state of its own keeps the one it gets here until
// it ends: making one costs 6 µs.
class InterpreterLock {
 public:
  InterpreterLock();
  ~InterpreterLock();
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;
  bool held() const { return visit_.admitted(); }

 private:
  Visit visit_;
  int state_ = 0;
};

// Whether the calling thread is one of a Python program: what runs on it may be interrupted by Python's signal handlers.
bool is_thread_of_python();

// Around every wait: lets go of Python's lock if the calling thread holds it, as one that came through ctypes.PyDLL does.
class WithoutInterpreterLock {
 public:
  WithoutInterpreterLock();
  ~WithoutInterpreterLock();
  WithoutInterpreterLock(const WithoutInterpreterLock&) = delete;
  WithoutInterpreterLock& operator=(const WithoutInterpreterLock&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace aclnn_cpu
