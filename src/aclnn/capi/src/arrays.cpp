// aclScalar, the arrays, and the lists.
#include <cmath>
#include <cstring>

#include "acl/acl.h"
#include "objects.h"

namespace aclnn_cpu {
namespace {

// Copies values through `convert` into a new array or list.
template <class Public, class Object, class Value, class Convert>
Public* make_array(Table<Object>& table, const char* function, const Value* values, uint64_t size, void* call_site,
                   Convert convert) {
  return made_by<Public>(function, [&]() -> void* {
    if (size > 0 && values == nullptr) {
      fail(ACLNN_ERR_PARAM_NULLPTR, std::string(function) + ": value is null but " + text_of(size) + " are announced.");
      return nullptr;
    }
    Object made;
    made.values.reserve(size);
    for (uint64_t i = 0; i < size; ++i) made.values.push_back(convert(values[i]));
    return table.insert(std::move(made), call_site);
  });
}

const auto as_it_is = [](auto value) { return value; };

// Destroys a list and those members that are still the objects it was made of: their handles say so.
template <class Object>
int destroy_list(Table<Members>& table, Table<Object>& members, const void* list, const char* function) {
  Members destroyed;
  const int code = destroy(table, list, function, &destroyed);
  for (const void* handle : destroyed.values) {
    Object member;
    members.take(handle, &member);
  }
  return code;
}

template <class Object>
int size_of(Table<Object>& table, const void* handle, uint64_t* size, const char* function) {
  return guarded(function, [&] {
    if (handle == nullptr || size == nullptr) {
      return fail_null(function, handle == nullptr ? "the array" : "size", ACLNN_ERR_PARAM_NULLPTR);
    }
    if (table.with(handle, [&](const Object& found) { *size = found.values.size(); })) return 0;
    return fail_not_live(function, "the argument", table.type(), handle, ACLNN_ERR_PARAM_INVALID);
  });
}

}  // namespace

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" {

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  void* call_site = __builtin_return_address(0);
  return made_by<aclScalar>("aclCreateScalar", [&]() -> void* {
    const size_t size = aclDataTypeSize(dataType);
    if (value == nullptr) {
      fail_null("aclCreateScalar", "value", ACLNN_ERR_PARAM_NULLPTR);
      return nullptr;
    }
    if (size == 0) {
      fail(ACLNN_ERR_PARAM_INVALID, "aclCreateScalar: dataType is " + std::to_string(dataType) +
                                        ", which is no type with a size; how much to read is not known.");
      return nullptr;
    }
    Scalar made;
    made.dtype = dataType;
    std::memcpy(made.bits, value, size);
    return scalars().insert(made, call_site);
  });
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return destroy(scalars(), scalar, "aclDestroyScalar");
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return make_array<aclIntArray>(int_arrays(), "aclCreateIntArray", value, size, __builtin_return_address(0), as_it_is);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return destroy(int_arrays(), array, "aclDestroyIntArray");
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return size_of(int_arrays(), array, size, "aclGetIntArraySize");
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  // Read as bytes: a bool that is neither 0 nor 1 would be undefined behaviour.
  const auto* bytes = reinterpret_cast<const unsigned char*>(value);
  return make_array<aclBoolArray>(bool_arrays(), "aclCreateBoolArray", bytes, size, __builtin_return_address(0),
                                  [](unsigned char byte) -> int64_t { return byte != 0; });
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return destroy(bool_arrays(), array, "aclDestroyBoolArray");
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return size_of(bool_arrays(), array, size, "aclGetBoolArraySize");
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return make_array<aclFloatArray>(float_arrays(), "aclCreateFloatArray", value, size,
                                   __builtin_return_address(0), as_it_is);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy(float_arrays(), array, "aclDestroyFloatArray");
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return size_of(float_arrays(), array, size, "aclGetFloatArraySize");
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return make_array<aclTensorList>(tensor_lists(), "aclCreateTensorList", value, size,
                                   __builtin_return_address(0), as_it_is);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
  return destroy_list(tensor_lists(), tensors(), list, "aclDestroyTensorList");
}

aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
  return size_of(tensor_lists(), list, size, "aclGetTensorListSize");
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return make_array<aclScalarList>(scalar_lists(), "aclCreateScalarList", value, size,
                                   __builtin_return_address(0), as_it_is);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* list) {
  return destroy_list(scalar_lists(), scalars(), list, "aclDestroyScalarList");
}

aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size) {
  return size_of(scalar_lists(), list, size, "aclGetScalarListSize");
}

}  // extern "C"
