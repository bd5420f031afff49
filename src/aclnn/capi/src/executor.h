// Phase 1 makes an executor, phase 2 runs it on a stream.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "engine.h"
#include "lifecycle.h"
#include "object_tables.h"

namespace aclnn_cpu {

struct Operator {
  int64_t number;  // its place in the contracts
  const char* name;
};

// One tensor of a call; the elements of a list are one each.
struct Part {
  const char* argument;
  int element;  // of a list; -1 for a tensor of its own
  bool is_output;
  const void* handle;     // null: the tensor is
  size_t first_word = 0;  // where it stands in the signature
  size_t words = 0;
  void* address = nullptr;
  bool is_empty = true;
  int64_t low = 0, high = 0;  // the bytes it reaches, from its address on
  bool is_wild = false;       // it reaches further than 64 bits can say
  uint64_t itemsize = 1;

  std::string name() const;
};

// One tensor or list argument: its parts.
struct Argument {
  bool is_list;
  bool is_input;
  bool is_output;  // may be both: an operator that writes over what it read
  size_t first_part;
  size_t parts;
};

class Executor : public ForkMark {
 public:
  Executor(const Operator& op, const Engine* engine) : op(op), engine(engine) {}
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Operator& op;
  const Engine* const engine;
  Planned planned;
  std::vector<int64_t> signature;
  std::vector<Part> parts;
  std::vector<Argument> arguments;

  std::mutex lock;                // of what follows
  std::vector<int64_t> accepted;  // addresses the engine has accepted, not to be asked about again
  bool repeatable = false;
  bool has_run = false;

  std::mutex one_at_a_time;
};

std::shared_ptr<Executor> find_executor(const void* handle);

// Phase 2 of every operator.
aclnnStatus run_operator(const Operator& op, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                         aclrtStream stream);

}  // namespace aclnn_cpu
