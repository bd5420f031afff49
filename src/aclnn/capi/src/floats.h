// The floating-point environment that results depend on. A thread inherits that of whoever made it, and a program may
// have set another one: flushed subnormals (any that was linked with -ffast-math) or another rounding.
#pragma once

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace aclnn_cpu {

// While one lives, its thread computes as the standard says: to nearest, with subnormals. Then it is as it was before.
class DefaultFloats {
 public:
#if defined(__aarch64__)  // fesetenv leaves the flushing of halves (FZ16) as it is
  DefaultFloats() : before_(__builtin_aarch64_get_fpcr()) { __builtin_aarch64_set_fpcr(0); }
  ~DefaultFloats() { __builtin_aarch64_set_fpcr(before_); }
#elif defined(__x86_64__)  // fesetenv takes longer than a small kernel, for the sake of a coprocessor that few change
  DefaultFloats() : before_(_mm_getcsr()) {
    asm volatile("fnstcw %0" : "=m"(coprocessor_));
    if (coprocessor_ != kDefaultCoprocessor) {
      std::fegetenv(&all_before_);
      std::fesetenv(FE_DFL_ENV);
    } else {
      _mm_setcsr(kDefault);
    }
  }
  ~DefaultFloats() {
    if (coprocessor_ != kDefaultCoprocessor) std::fesetenv(&all_before_);
    else _mm_setcsr(before_);
  }
#else
  DefaultFloats() {
    std::fegetenv(&all_before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&all_before_); }
#endif
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
#if defined(__aarch64__) || defined(__x86_64__)
  unsigned int before_;
#endif
#if defined(__x86_64__)
  static constexpr unsigned int kDefault = 0x1F80;  // to nearest, subnormals stay, nothing traps
  static constexpr unsigned short kDefaultCoprocessor = 0x37F;
  unsigned short coprocessor_;
#endif
#if !defined(__aarch64__)
  std::fenv_t all_before_;
#endif
};

}  // namespace aclnn_cpu
