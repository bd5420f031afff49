// Every kind of object that a program can hold, once. From this list come the numbers in handles, the tables, the names
// in sentences, the count of what is alive and the report of leaks.
#pragma once

#include <cstdint>

// DO(kind, type of the public interface, object behind it, table)
#define ACLNN_CPU_EACH_KIND(DO)                                     \
  DO(tensor, aclTensor, Tensor, tensors)                            \
  DO(tensor_list, aclTensorList, Members, tensor_lists)             \
  DO(scalar, aclScalar, Scalar, scalars)                            \
  DO(scalar_list, aclScalarList, Members, scalar_lists)             \
  DO(int_array, aclIntArray, Numbers, int_arrays)                   \
  DO(bool_array, aclBoolArray, Numbers, bool_arrays)                \
  DO(float_array, aclFloatArray, Floats, float_arrays)              \
  DO(executor, aclOpExecutor, std::shared_ptr<Executor>, executors) \
  DO(stream, aclrtStream, std::shared_ptr<Stream>, streams)         \
  DO(event, aclrtEvent, std::shared_ptr<Event>, events)             \
  DO(context, aclrtContext, Context, contexts)

namespace aclnn_cpu {

enum class Kind : uint8_t {
  none,  // so that no handle of a kind is all zeros
#define ACLNN_CPU_KIND(kind, type, object, table) kind,
  ACLNN_CPU_EACH_KIND(ACLNN_CPU_KIND)
#undef ACLNN_CPU_KIND
};

}  // namespace aclnn_cpu
