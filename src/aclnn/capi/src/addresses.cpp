// Executors after phase 1: made repeatable, given other memory, destroyed.
#include "acl/acl.h"
#include "executor.h"
#include "interpreter.h"
#include "objects.h"

namespace aclnn_cpu {
namespace {

enum class Among { inputs, outputs, all };

std::string position_text(const char* function, Among among, size_t index) {
  const char* of = among == Among::inputs ? "input" : among == Among::outputs ? "output" : "argument";
  return std::string(function) + ": " + of + " " + text_of(index);
}

const Argument* argument_at(const Executor& executor, Among among, size_t index) {
  for (const Argument& argument : executor.arguments) {
    const bool counts = among == Among::inputs    ? argument.is_input
                        : among == Among::outputs ? argument.is_output
                                                  : true;
    if (counts && index-- == 0) return &argument;
  }
  return nullptr;
}

// A handle must stand for what phase 1 planned: the same shape, strides, dtype and format.
int check_same_tensor(const char* function, const Executor& executor, const Part& part, const void* handle) {
  if (handle == nullptr) return fail_null(function, "the tensor", ACLNN_ERR_PARAM_NULLPTR);
  bool same = false;
  const auto planned = executor.signature.begin() + static_cast<std::ptrdiff_t>(part.first_word);
  const bool live = tensors().with(handle, [&](const Tensor& tensor) {
    same = tensor.words.size() == part.words && std::equal(tensor.words.begin(), tensor.words.end(), planned);
  });
  if (!live) return fail_not_live(function, "the tensor", "aclTensor", handle, ACLNN_ERR_PARAM_INVALID);
  if (same) return 0;
  return fail(ACLNN_ERR_PARAM_INVALID, std::string(function) + ": the tensor is not what " + executor.op.name +
                                           " planned for " + part.name() + "; shape, strides and dtype must be equal.");
}

int exchange(const char* function, Executor& executor, Part& part, const void* handle, void* address) {
  const int code = check_same_tensor(function, executor, part, handle);
  if (code != 0) return code;
  WithoutInterpreterLock whoever_holds_the_executor_may_need_it;
  std::lock_guard<std::mutex> hold(executor.lock);
  part.address = address;
  executor.accepted.clear();
  tensors().with(handle, [&](Tensor& tensor) { tensor.data = address; });
  return 0;
}

int find(const char* function, const void* handle, std::shared_ptr<Executor>* executor) {
  if (handle == nullptr) return fail_null(function, "executor", ACLNN_ERR_PARAM_NULLPTR);
  *executor = find_executor(handle);
  if (*executor && (*executor)->is_orphan()) {
    return fail(ACLNN_ERR_INNER, std::string(function) + ": executor was made before a fork; it is the parent's.");
  }
  if (*executor) return 0;
  return fail_not_live(function, "executor", "aclOpExecutor", handle, ACLNN_ERR_INNER);
}

int set_tensor(const char* function, Among among, aclOpExecutor* handle, size_t index, aclTensor* tensor,
               void* address) {
  return guarded(function, [&] {
    std::shared_ptr<Executor> executor;
    const int code = find(function, handle, &executor);
    if (code != 0) return code;
    const Argument* argument = argument_at(*executor, among, index);
    if (argument == nullptr || argument->is_list) {
      return fail(ACLNN_ERR_PARAM_INVALID, position_text(function, among, index) + " of " + executor->op.name +
                                               (argument == nullptr ? " does not exist." : " is a list of tensors."));
    }
    return exchange(function, *executor, executor->parts[argument->first_part], tensor, address);
  });
}

int set_element(const char* function, Among among, aclOpExecutor* handle, size_t index, size_t element,
                aclTensorList* list, void* address) {
  return guarded(function, [&] {
    std::shared_ptr<Executor> executor;
    const int code = find(function, handle, &executor);
    if (code != 0) return code;
    const Argument* argument = argument_at(*executor, among, index);
    if (argument == nullptr || !argument->is_list) {
      return fail(ACLNN_ERR_PARAM_INVALID, position_text(function, among, index) + " of " + executor->op.name +
                                               (argument == nullptr ? " does not exist." : " is no list."));
    }
    if (list == nullptr) return fail_null(function, "the list", ACLNN_ERR_PARAM_NULLPTR);
    Members members;
    if (!tensor_lists().with(list, [&](const Members& found) { members = found; })) {
      return fail_not_live(function, "the list", "aclTensorList", list, ACLNN_ERR_PARAM_INVALID);
    }
    if (element >= argument->parts || element >= members.values.size()) {
      return fail(ACLNN_ERR_PARAM_INVALID, std::string(function) + ": element " + text_of(element) +
                                               " does not exist in a list of " + text_of(argument->parts) + ".");
    }
    Part& part = executor->parts[argument->first_part + element];
    return exchange(function, *executor, part, members.values[element], address);
  });
}

}  // namespace
}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" {

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  return guarded("aclSetAclOpExecutorRepeatable", [&] {
    std::shared_ptr<Executor> found;
    const int code = find("aclSetAclOpExecutorRepeatable", executor, &found);
    if (code != 0) return code;
    WithoutInterpreterLock whoever_holds_the_executor_may_need_it;
    std::lock_guard<std::mutex> hold(found->lock);
    found->repeatable = true;
    return 0;
  });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return destroy(executors(), executor, "aclDestroyAclOpExecutor");
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* address) {
  return set_tensor("aclSetInputTensorAddr", Among::inputs, executor, index, tensor, address);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* address) {
  return set_tensor("aclSetOutputTensorAddr", Among::outputs, executor, index, tensor, address);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* address) {
  return set_tensor("aclSetTensorAddr", Among::all, executor, index, tensor, address);
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t listIndex, const size_t elementIndex,
                                         aclTensorList* tensors, void* address) {
  return set_element("aclSetDynamicInputTensorAddr", Among::inputs, executor, listIndex, elementIndex, tensors,
                     address);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t listIndex, const size_t elementIndex,
                                          aclTensorList* tensors, void* address) {
  return set_element("aclSetDynamicOutputTensorAddr", Among::outputs, executor, listIndex, elementIndex, tensors,
                     address);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t listIndex, const size_t elementIndex,
                                    aclTensorList* tensors, void* address) {
  return set_element("aclSetDynamicTensorAddr", Among::all, executor, listIndex, elementIndex, tensors, address);
}

}  // extern "C"
