// Phase 1: writes a call into a signature, argument by argument, and asks the engine to plan it.
#pragma once

#include "executor.h"
#include "objects.h"

namespace aclnn_cpu {

class Planning {
 public:
  Planning(const Operator& op, uint64_t* workspace_size, aclOpExecutor** executor, void* call_site);

  Planning& in(const char* name, const aclTensor* tensor) { return tensor_argument(name, tensor, {true, false}); }
  Planning& out(const char* name, const aclTensor* tensor) { return tensor_argument(name, tensor, {false, true}); }
  Planning& in_out(const char* name, const aclTensor* tensor) { return tensor_argument(name, tensor, {true, true}); }
  Planning& in(const char* name, const aclTensorList* list) { return list_argument(name, list, {true, false}); }
  Planning& out(const char* name, const aclTensorList* list) { return list_argument(name, list, {false, true}); }
  Planning& scalar(const char* name, const aclScalar* value);
  Planning& integers(const char* name, const aclIntArray* values);
  Planning& flags(const char* name, const aclBoolArray* values);
  Planning& flag(bool value);
  Planning& integer(int64_t value);
  Planning& real(double value);

  // The end of every phase 1: nothing is written on failure.
  aclnnStatus plan();

 private:
  struct Role {
    bool is_input, is_output;
  };
  Planning& tensor_argument(const char* name, const aclTensor* tensor, Role role);
  Planning& list_argument(const char* name, const aclTensorList* list, Role role);
  Planning& numbers(Table<Numbers>& table, const char* name, const void* handle);
  template <class Object, class Write>
  Planning& read(Table<Object>& table, const char* name, int element, const void* handle, Write write);
  void tensor_words(const char* name, int element, const void* handle, bool is_output);

  const Operator& op_;
  uint64_t* workspace_size_;
  aclOpExecutor** executor_;
  void* call_site_;
  Outcome failure_;
  std::vector<int64_t> signature_;
  std::vector<Part> parts_;
  std::vector<Argument> arguments_;
};

}  // namespace aclnn_cpu
