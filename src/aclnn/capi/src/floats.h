// The floating-point environment that results depend on. A thread inherits that of whoever made it, and a program may
// have set another one: flushed subnormals (any that was linked with -ffast-math) or another rounding.
#pragma once

#include <cfenv>

namespace aclnn_cpu {

// While one lives, its thread computes as the standard says: to nearest, with subnormals. Then it is as it was before.
class DefaultFloats {
 public:
#if defined(__aarch64__)  // fesetenv leaves the flushing of halves (FZ16) as it is
  DefaultFloats() : before_(__builtin_aarch64_get_fpcr()) { __builtin_aarch64_set_fpcr(0); }
  ~DefaultFloats() { __builtin_aarch64_set_fpcr(before_); }
#else
  DefaultFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&before_); }
#endif
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
#if defined(__aarch64__)
  unsigned int before_;
#else
  std::fenv_t before_;
#endif
};

}  // namespace aclnn_cpu
