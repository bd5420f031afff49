// The table of every kind of object.
#pragma once

#include <memory>
#include <vector>

#include "handle_table.h"

namespace aclnn_cpu {

struct Tensor;
struct Scalar;
struct Numbers;
struct Floats;
struct Members;
struct Context;
class Executor;
class Stream;
class Event;

#define ACLNN_CPU_DECLARE_TABLE(kind, type, object, table) Table<object>& table();
ACLNN_CPU_EACH_KIND(ACLNN_CPU_DECLARE_TABLE)
#undef ACLNN_CPU_DECLARE_TABLE

// What the program has made and not destroyed: a type, and the code addresses that made its objects.
struct Alive {
  const char* type;
  std::vector<void*> call_sites;
};
std::vector<Alive> alive_objects();

// In the child of a fork: the locks of single objects are free.
void set_objects_free();

}  // namespace aclnn_cpu

// How many objects, executors, streams, events and contexts of the program are alive.
extern "C" __attribute__((visibility("default"))) size_t aclnn_cpu_live_objects(void);
