// `no_memory MOST`: fails the n-th allocation of every phase of calls of all operators, for n from 1 on.
//
// Every malloc and new of the process goes through here. In turn one allocation fails, or all from the n-th on: in the
// thread that calls the interface, or (phase "work") in all others, where the kernels run. Threads are started before:
// Python ends the process when it has no memory for the state of a new one. What must hold: an answer other than 0 has
// a sentence and leaves the memory as it was, 0 means that the outputs are right, and the next call is served. A kernel
// that has begun to write when its memory ends ("work") is reported, its outputs are not whole.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "call.h"

extern "C" size_t aclnn_cpu_live_objects(void);
extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_calloc(size_t, size_t);
extern "C" void* __libc_realloc(void*, size_t);
extern "C" void* __libc_memalign(size_t, size_t);

namespace {

enum class Until { once, for_good };

enum class Where { nowhere, here, elsewhere };

thread_local bool is_caller = false;
std::atomic<Where> where{Where::nowhere};
std::atomic<long> left{0};
std::atomic<bool> fired{false};
Until until = Until::once;

// numpy does not look at what it gets for some small things (the shapes of a matrix product): it cannot be helped.
bool is_numpy(const void* code) {
  Dl_info info;
  return dladdr(code, &info) != 0 && std::strstr(info.dli_fname, "/numpy") != nullptr;
}

bool fails(const void* code) {
  const Where now = where.load();
  if (now == Where::nowhere || (now == Where::here) != is_caller || is_numpy(code)) return false;
  const long rest = left.fetch_sub(1) - 1;
  if (rest > 0 || (rest < 0 && until == Until::once)) return false;
  fired = true;
  errno = ENOMEM;
  return true;
}

// While one lives, the n-th allocation fails; none if there is no n.
struct Fault {
  Fault(long n, Until how, Where place = Where::here) {
    left = n;
    until = how;
    fired = false;
    if (n > 0) where = place;
  }
  ~Fault() { where = Where::nowhere; }
};

long faults = 0, refusals = 0;

[[noreturn]] void found(const Call& call, const char* phase, long n, const std::string& what) {
  where = Where::nowhere;
  std::printf("%s, %s, allocation %ld: %s\n  %s\n", call.op->name, phase, n, what.c_str(), aclGetRecentErrMsg());
  std::exit(1);
}

// What was refused has a sentence, and nothing is written; work that was taken and then failed may have begun to write, on
// whichever thread it ran.
void check_refusal(Call& call, const char* phase, long n, bool was_taken) {
  ++refusals;
  if (*aclGetRecentErrMsg() == '\0') found(call, phase, n, "no sentence");
  if (!was_taken && !call.untouched()) found(call, phase, n, "refused and wrote");
}

// Goes through all phases with a fault in one of them; whether the fault came to pass.
bool one_call(uint64_t seed, const char* phase, long n, Until how) {
  Draw draw(seed);
  Call call = valid_call(draw);
  call.remember();
  const auto in = [&](const char* name) { return std::strcmp(name, phase) == 0 ? n : 0; };
  bool came = false;
  {
    Fault fault(in("create"), how);
    call.create();
    came = fired;
  }
  int code;
  bool was_taken = false;
  {
    Fault fault(in("plan"), how);
    code = call.plan();
    came |= fired;
  }
  if (code != 0 && !came) found(call, phase, n, "refused without a fault");
  if (code == 0) {
    call.workspace.resize(call.workspace_size);
    Fault fault(in("run") + in("work"), how, in("work") ? Where::elsewhere : Where::here);
    code = call.run(nullptr);
    was_taken = code == 0;
    if (was_taken) code = aclrtSynchronizeStream(nullptr);
    came |= fired;
  }
  if (code == 0 && !call.outcome().empty()) found(call, phase, n, call.outcome());
  if (code != 0) check_refusal(call, phase, n, was_taken);
  {
    Fault fault(in("destroy"), how);
    aclDestroyAclOpExecutor(call.executor);
    call.destroy();
    came |= fired;
  }
  aclGetRecentErrMsg();
  return came;
}

void all_faults(uint64_t seed, const char* phase, Until how, long most) {
  one_call(seed, "", 0, how);  // what the first call of a kind allocates for good is there
  const size_t alive = aclnn_cpu_live_objects();
  for (long n = 1; n <= most && one_call(seed, phase, n, how); ++n) {
    ++faults;
    one_call(seed, "", 0, how);
    if (aclnn_cpu_live_objects() != alive) {
      std::printf("%s, allocation %ld: %zu objects are left\n", phase, n, aclnn_cpu_live_objects() - alive);
      std::exit(1);
    }
  }
}

}  // namespace

#define UNLESS_IT_FAILS(made) (fails(__builtin_return_address(0)) ? nullptr : (made))

extern "C" {
void* malloc(size_t size) { return UNLESS_IT_FAILS(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return UNLESS_IT_FAILS(__libc_calloc(count, size)); }
void* realloc(void* memory, size_t size) { return UNLESS_IT_FAILS(__libc_realloc(memory, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return UNLESS_IT_FAILS(__libc_memalign(alignment, size)); }
void* memalign(size_t alignment, size_t size) { return UNLESS_IT_FAILS(__libc_memalign(alignment, size)); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = UNLESS_IT_FAILS(__libc_memalign(alignment, size));
  return *memory == nullptr ? ENOMEM : 0;
}
}

int main(int, char** arguments) {
  is_caller = true;
  const long most = std::atol(arguments[1]);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const Until how : {Until::once, Until::for_good}) {
      for (const char* phase : {"create", "plan", "run", "work", "destroy"}) all_faults(seed, phase, how, most);
    }
  }
  std::printf("%ld allocations failed, %ld calls were refused, nothing found\n", faults, refusals);
}
