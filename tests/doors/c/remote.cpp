// Puts the engine in a process of its own behind the library, as programs have it that have another Python inside: linking
// this file does so.
#include <cstdio>
#include <cstdlib>

#include "engine.h"
#include "interpreter.h"
#include "recorded.h"

namespace {

__attribute__((constructor)) void use() {
  const aclnn_cpu::Environment environment = {ACLNN_CPU_PYTHON_VERSION, ACLNN_CPU_PYTHON, "", "", ""};
  aclnn_cpu::Outcome reason;
  const aclnn_cpu::Engine* engine = aclnn_cpu::start_remote(environment, &reason);
  if (engine == nullptr) {
    std::printf("%s\n", reason.sentence.c_str());
    std::exit(1);
  }
  aclnn_cpu_use_engine(engine);
}

}  // namespace
