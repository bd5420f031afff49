// What went wrong, in one sentence: remembered per thread for aclGetRecentErrMsg, or said on stderr.
#pragma once

#include <cxxabi.h>

#include <new>
#include <stdexcept>
#include <string>

#include "aclnn/acl_meta.h"

namespace aclnn_cpu {

// The result of work: a code, and the sentence that goes with one that is not 0.
struct Outcome {
  int code = 0;
  std::string sentence;

  bool ok() const { return code == 0; }
};

// Remembers the sentence for the calling thread and returns the code, ready to be returned to the program. Where there is
// no memory left to remember it in, a sentence that says so takes its place.
int fail(int code, const std::string& sentence) noexcept;
int fail(const Outcome& outcome) noexcept;

// The same when memory ran out: needs none.
int fail_no_memory(const char* function) noexcept;

// `function: argument is null; it must be given.`
Outcome is_null(const char* function, const char* argument, int code);
int fail_null(const char* function, const char* argument, int code = ACL_ERROR_INVALID_PARAM);

// `function: argument is 0x…, which is no live aclX; it was destroyed or never created.`
Outcome is_not_live(const char* function, const std::string& argument, const char* type, const void* pointer, int code);
int fail_not_live(const char* function, const std::string& argument, const char* type, const void* pointer, int code);

// One line on fd 2, past every buffer: the process may be on its way out.
void say(const std::string& sentence);

// A number or an address in a sentence.
std::string text_of(unsigned long long number);
std::string text_of(const void* address);

// An exception that is not about memory, in its own words.
int fail_with(const char* function, const char* words) noexcept;

// Runs a public function's body. C++ exceptions stop here; the end of a thread passes through.
template <class Body>
int guarded(const char* function, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail_no_memory(function);
  } catch (const std::length_error&) {  // more elements than any memory holds
    return fail_no_memory(function);
  } catch (const std::exception& error) {
    return fail_with(function, error.what());
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {  // of a callback: the program may throw anything
    return fail_with(function, "something was thrown that is no std::exception");
  }
}

// The same for functions that return an object, and null when it cannot be made.
template <class Object, class Body>
Object* made_by(const char* function, Body body) {
  void* made = nullptr;
  guarded(function, [&] {
    made = body();
    return 0;
  });
  return static_cast<Object*>(made);
}

}  // namespace aclnn_cpu
