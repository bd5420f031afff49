#include "object_tables.h"

#include "devices.h"
#include "executor.h"
#include "objects.h"
#include "stream.h"

namespace aclnn_cpu {

// Never destroyed: destructors that run after main still destroy objects.
#define ACLNN_CPU_DEFINE_TABLE(kind, type, object, table)          \
  Table<object>& table() {                                         \
    static auto* made = new Table<object>(Kind::kind, #type);      \
    return *made;                                                  \
  }
ACLNN_CPU_EACH_KIND(ACLNN_CPU_DEFINE_TABLE)
#undef ACLNN_CPU_DEFINE_TABLE

std::vector<Alive> alive_objects() {
#define ACLNN_CPU_ALIVE(kind, type, object, table) {#type, table().call_sites()},
  return {ACLNN_CPU_EACH_KIND(ACLNN_CPU_ALIVE)};
#undef ACLNN_CPU_ALIVE
}

void set_objects_free() {
#define ACLNN_CPU_SET_FREE(kind, type, object, table) table().set_free();
  ACLNN_CPU_EACH_KIND(ACLNN_CPU_SET_FREE)
#undef ACLNN_CPU_SET_FREE
}

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" size_t aclnn_cpu_live_objects() {
#define ACLNN_CPU_COUNT(kind, type, object, table) +table().alive()
  return 0 ACLNN_CPU_EACH_KIND(ACLNN_CPU_COUNT);
#undef ACLNN_CPU_COUNT
}
