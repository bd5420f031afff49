// A process with the engine's Python, for programs that have another Python inside: requests, answers, shared memory.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "engine.h"
#include "interpreter.h"

namespace aclnn_cpu {

enum class Request : int64_t { hello, plan, check, run, destroy };

class OtherProcess {
 public:
  // Starts the process. It lives until this one ends, and is nobody's child.
  Outcome start(const Environment& environment);

  // Asks and waits for the answer: its words if the outcome is ok. Whoever asks holds the lock.
  Outcome ask(Request request, int64_t subject, Words words, std::vector<int64_t>* answer);

  // Memory that both processes see, at least so large; null when there is none. It may move when it grows.
  char* shared(size_t size);

  std::mutex lock;  // one question at a time, and what it shares

 private:
  Outcome gone();

  int connection_ = -1;
  int file_ = -1;
  char* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace aclnn_cpu
