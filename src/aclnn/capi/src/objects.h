// The objects operators take, and their tables.
#pragma once

#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "check.h"
#include "errors.h"
#include "short_vector.h"
#include "object_tables.h"

namespace aclnn_cpu {

// How a tensor stands in a signature: these words, then its sizes, then its strides.
namespace word {
enum : size_t { rank, dtype, format, offset, storage, sizes };
constexpr int64_t null = -1;          // in place of a whole object
constexpr int64_t open_storage = -1;  // the program did not say how large the storage is
}  // namespace word

struct Tensor {
  Small<word::sizes + 2 * 8> words;
  Small<8> storage_sizes;
  void* data = nullptr;
};

struct Scalar {
  int64_t dtype = 0;
  int64_t bits[2] = {};
};

struct Numbers {
  std::vector<int64_t> values;
};

struct Floats {
  std::vector<float> values;
};

struct Members {
  std::vector<const void*> values;  // handles
};

// Destroys what a handle stands for. Null and what is already destroyed are fine; what never was one of ours is not.
template <class Object>
int destroy(Table<Object>& table, const void* handle, const char* function, Object* destroyed) {
  return guarded(function, [&] {
    if (handle == nullptr || table.take(handle, destroyed)) return 0;
    if (table.standing(handle) == Standing::foreign) {
      return fail_not_live(function, "the argument", table.type(), handle, ACLNN_ERR_PARAM_INVALID);
    }
    if (checking()) say(std::string(function) + ": this " + table.type() + " was already destroyed.");
    return 0;
  });
}

template <class Object>
int destroy(Table<Object>& table, const void* handle, const char* function) {
  Object destroyed;
  return destroy(table, handle, function, &destroyed);
}

}  // namespace aclnn_cpu
