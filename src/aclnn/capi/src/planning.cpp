#include "planning.h"

#include <algorithm>
#include <cstring>

#include "dtype_tables.h"
#include "lifecycle.h"

namespace aclnn_cpu {
namespace {

// The bytes a part reaches, from its address on.
void find_reach(const std::vector<int64_t>& signature, Part* part) {
  if (part->handle == nullptr) return;
  const int64_t* words = signature.data() + part->first_word;
  const int64_t rank = words[word::rank];
  const int64_t* sizes = words + word::sizes;
  const int64_t* strides = sizes + rank;
  __int128 low = words[word::offset], high = low;
  part->is_empty = false;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (sizes[axis] == 0) part->is_empty = true;
    const __int128 reach = static_cast<__int128>(sizes[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  part->itemsize = std::max<uint64_t>(itemsize_of(static_cast<int>(words[word::dtype])), 1);
  const __int128 itemsize = part->itemsize;
  low *= itemsize;
  high = (high + 1) * itemsize;
  part->is_wild = low < INT64_MIN / 2 || high > INT64_MAX / 2;
  if (part->is_wild) return;
  part->low = static_cast<int64_t>(low);
  part->high = static_cast<int64_t>(high);
}

Outcome prefixed(const char* name, Outcome outcome) {
  outcome.sentence = std::string(name) + ": " + outcome.sentence;
  return outcome;
}

}  // namespace

Planning::Planning(const Operator& op, uint64_t* workspace_size, aclOpExecutor** executor, void* call_site)
    : op_(op), workspace_size_(workspace_size), executor_(executor), call_site_(call_site), signature_{op.number} {
  const char* missing = workspace_size == nullptr ? "workspaceSize" : executor == nullptr ? "executor" : nullptr;
  if (missing != nullptr) {
    failure_ = is_null(op.name, missing, ACLNN_ERR_PARAM_NULLPTR);
    return;
  }
  const Outcome taken = operators_are_taken();
  if (!taken.ok()) failure_ = prefixed(op.name, taken);
}

Planning& Planning::tensor_argument(const char* name, const aclTensor* tensor, Role role) {
  arguments_.push_back({false, role.is_input, role.is_output, parts_.size(), 1});
  tensor_words(name, -1, tensor, role.is_output);
  return *this;
}

// Writes an object by `write`, null as a word of its own.
template <class Object, class Write>
Planning& Planning::read(Table<Object>& table, const char* name, int element, const void* handle, Write write) {
  if (!failure_.ok()) return *this;
  if (handle == nullptr) {
    signature_.push_back(word::null);
  } else if (!table.with(handle, write)) {
    const std::string argument = Part{name, element, false, handle}.name();
    failure_ = is_not_live(op_.name, argument, table.type(), handle, ACLNN_ERR_PARAM_INVALID);
  }
  return *this;
}

Planning& Planning::list_argument(const char* name, const aclTensorList* list, Role role) {
  std::vector<const void*> members;
  read(tensor_lists(), name, -1, list, [&](const Members& found) {
    members = found.values;
    signature_.push_back(static_cast<int64_t>(members.size()));
  });
  arguments_.push_back({true, role.is_input, role.is_output, parts_.size(), members.size()});
  int element = 0;
  for (const void* handle : members) tensor_words(name, element++, handle, role.is_output);
  return *this;
}

void Planning::tensor_words(const char* name, int element, const void* handle, bool is_output) {
  Part part = {name, element, is_output, handle};
  part.first_word = signature_.size();
  read(tensors(), name, element, handle, [&](const Tensor& tensor) {
    signature_.insert(signature_.end(), tensor.words.begin(), tensor.words.end());
    part.address = tensor.data;
  });
  part.words = signature_.size() - part.first_word;
  parts_.push_back(part);
}

Planning& Planning::scalar(const char* name, const aclScalar* value) {
  return read(scalars(), name, -1, value, [&](const Scalar& found) {
    signature_.insert(signature_.end(), {found.dtype, found.bits[0], found.bits[1]});
  });
}

Planning& Planning::integers(const char* name, const aclIntArray* values) { return numbers(int_arrays(), name, values); }

Planning& Planning::flags(const char* name, const aclBoolArray* values) { return numbers(bool_arrays(), name, values); }

Planning& Planning::numbers(Table<Numbers>& table, const char* name, const void* handle) {
  return read(table, name, -1, handle, [&](const Numbers& found) {
    signature_.push_back(static_cast<int64_t>(found.values.size()));
    signature_.insert(signature_.end(), found.values.begin(), found.values.end());
  });
}

Planning& Planning::flag(bool value) {
  signature_.push_back(value ? 1 : 0);
  return *this;
}

Planning& Planning::integer(int64_t value) {
  signature_.push_back(value);
  return *this;
}

Planning& Planning::real(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  signature_.push_back(bits);
  return *this;
}

aclnnStatus Planning::plan() {
  if (!failure_.ok()) return fail(failure_);
  Outcome reason;
  const Engine* chosen = engine(&reason);
  if (chosen == nullptr) return fail(prefixed(op_.name, reason));
  auto made = std::make_shared<Executor>(op_, chosen);  // first: it gives back what is planned if anything fails later
  const Outcome outcome = chosen->plan({signature_.data(), signature_.size()}, &made->planned);
  if (!outcome.ok()) return fail(outcome);
  if (made->planned.is_new) register_exit_hook();
  const uint64_t size = made->planned.workspace_size;
  for (Part& part : parts_) find_reach(signature_, &part);
  made->signature = std::move(signature_);
  made->parts = std::move(parts_);
  made->arguments = std::move(arguments_);
  void* handle = executors().insert(std::move(made), call_site_);
  *workspace_size_ = size;
  *executor_ = static_cast<aclOpExecutor*>(handle);
  return 0;
}

}  // namespace aclnn_cpu
