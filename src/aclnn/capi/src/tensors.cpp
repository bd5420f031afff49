// aclTensor: made, read, destroyed.
#include <algorithm>

#include "acl/acl.h"
#include "dtype_tables.h"
#include "objects.h"

namespace aclnn_cpu {
namespace {

constexpr uint64_t kMostDimensions = 32;  // more than any operator takes: those can say so themselves

// The elements of a shape, empty dimensions counting as 1 (strides go on through them); -1 when they are too many.
int64_t span_of(const int64_t* sizes, uint64_t rank, int64_t itemsize) {
  int64_t bytes = itemsize;
  for (uint64_t axis = 0; axis < rank; ++axis) {
    const int64_t size = sizes[axis] == 0 ? 1 : sizes[axis];
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes / itemsize;
}

int64_t elements_of(const int64_t* sizes, uint64_t rank) {
  int64_t count = 1;
  for (uint64_t axis = 0; axis < rank; ++axis) count *= sizes[axis];
  return count;
}

std::string shape_text(const int64_t* sizes, uint64_t rank) {
  std::string text = "[";
  for (uint64_t axis = 0; axis < rank; ++axis) text += (axis ? ", " : "") + std::to_string(sizes[axis]);
  return text + "]";
}

struct Given {
  const int64_t* sizes;
  uint64_t rank;
  aclDataType dtype;
  const int64_t* strides;
  int64_t offset;
  aclFormat format;
  const int64_t* storage_sizes;
  uint64_t storage_rank;
  void* data;
};

// What is wrong with sizes that cannot be a shape.
std::string shape_fault(const int64_t* sizes, uint64_t rank) {
  if (sizes == nullptr) return "is null but " + text_of(rank) + " dimensions are announced.";
  if (rank > kMostDimensions) return "has " + text_of(rank) + " dimensions; it must have at most 32.";
  return "is " + shape_text(sizes, rank) + "; sizes must be at least 0 and the bytes must fit into 63 bits.";
}

bool is_shape(const char* function, const char* argument, const int64_t* sizes, uint64_t rank, int64_t itemsize) {
  const bool is_null = rank > 0 && sizes == nullptr;
  if (!is_null && rank <= kMostDimensions && span_of(sizes, rank, itemsize) >= 0) return true;
  const int code = is_null ? ACLNN_ERR_PARAM_NULLPTR : ACLNN_ERR_PARAM_INVALID;
  fail(code, std::string(function) + ": " + argument + " " + shape_fault(sizes, rank));
  return false;
}

bool describe(const char* function, const Given& given, Tensor* tensor) {
  const int64_t itemsize = static_cast<int64_t>(aclDataTypeSize(given.dtype));
  const int64_t unit = itemsize == 0 ? 1 : itemsize;
  if (!is_shape(function, "viewDims", given.sizes, given.rank, unit)) return false;
  const bool storage_is_open = given.storage_sizes == nullptr && given.storage_rank == 0;
  if (!storage_is_open && !is_shape(function, "storageDims", given.storage_sizes, given.storage_rank, unit)) return false;
  int64_t* words = tensor->words.make(word::sizes + 2 * given.rank);
  words[word::rank] = static_cast<int64_t>(given.rank);
  words[word::dtype] = given.dtype;
  words[word::format] = given.format;
  words[word::offset] = given.offset;
  words[word::storage] = storage_is_open ? word::open_storage : elements_of(given.storage_sizes, given.storage_rank);
  int64_t* sizes = words + word::sizes;
  int64_t* strides = sizes + given.rank;
  int64_t step = 1;
  for (uint64_t axis = given.rank; axis-- > 0;) {
    sizes[axis] = given.sizes[axis];
    strides[axis] = given.strides == nullptr ? step : given.strides[axis];
    step *= sizes[axis] == 0 ? 1 : sizes[axis];
  }
  if (!storage_is_open) tensor->storage_sizes.assign(given.storage_sizes, given.storage_rank);
  tensor->data = given.data;
  return true;
}

// Reads a live tensor for a getter; answers the code for a null or dead one, or a null place for the answer.
template <class Read>
int read(const char* function, const aclTensor* tensor, bool has_places, Read read_it) {
  return guarded(function, [&] {
    if (tensor == nullptr) return fail_null(function, "tensor", ACLNN_ERR_PARAM_NULLPTR);
    if (!has_places) return fail_null(function, "the place for the answer", ACLNN_ERR_PARAM_NULLPTR);
    if (tensors().with(tensor, read_it)) return 0;
    return fail_not_live(function, "tensor", "aclTensor", tensor, ACLNN_ERR_PARAM_INVALID);
  });
}

void hand_out(const int64_t* values, size_t count, int64_t** result, uint64_t* number) {
  *result = new int64_t[count];
  std::copy(values, values + count, *result);
  *number = count;
}

}  // namespace

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" {

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) {
  void* call_site = __builtin_return_address(0);
  return made_by<aclTensor>("aclCreateTensor", [&]() -> void* {
    Tensor tensor;
    const Given given = {viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
                         tensorData};
    return describe("aclCreateTensor", given, &tensor) ? tensors().insert(std::move(tensor), call_site) : nullptr;
  });
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                          const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
                          uint64_t storageDimsNum, void* tensorData) {
  return guarded("aclInitTensor", [&] {
    Tensor made;
    const Given given = {viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
                         tensorData};
    if (!describe("aclInitTensor", given, &made)) return static_cast<int>(ACLNN_ERR_PARAM_INVALID);
    return read("aclInitTensor", tensor, true, [&](Tensor& found) { found = std::move(made); });
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return destroy(tensors(), tensor, "aclDestroyTensor");
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return read("aclGetViewShape", tensor, viewDims != nullptr && viewDimsNum != nullptr, [&](const Tensor& found) {
    const size_t rank = static_cast<size_t>(found.words[word::rank]);
    hand_out(found.words.begin() + word::sizes, rank, viewDims, viewDimsNum);
  });
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* stridesNum) {
  return read("aclGetViewStrides", tensor, strides != nullptr && stridesNum != nullptr, [&](const Tensor& found) {
    const size_t rank = static_cast<size_t>(found.words[word::rank]);
    hand_out(found.words.begin() + word::sizes + rank, rank, strides, stridesNum);
  });
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
  const bool has_places = storageDims != nullptr && storageDimsNum != nullptr;
  return read("aclGetStorageShape", tensor, has_places, [&](const Tensor& found) {
    hand_out(found.storage_sizes.begin(), found.storage_sizes.size(), storageDims, storageDimsNum);
  });
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return read("aclGetViewOffset", tensor, offset != nullptr,
              [&](const Tensor& found) { *offset = found.words[word::offset]; });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return read("aclGetFormat", tensor, format != nullptr,
              [&](const Tensor& found) { *format = static_cast<aclFormat>(found.words[word::format]); });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return read("aclGetDataType", tensor, dataType != nullptr,
              [&](const Tensor& found) { *dataType = static_cast<aclDataType>(found.words[word::dtype]); });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** address) {
  return read("aclGetRawTensorAddr", tensor, address != nullptr,
              [&](const Tensor& found) { *address = found.data; });
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* address) {
  return read("aclSetRawTensorAddr", tensor, true, [&](Tensor& found) { found.data = address; });
}

}  // extern "C"
