// `many COUNT`: so many scalars alive at once, each its own; then sentences where there is hardly a program left: in
// destructors of threads, at exit, and in static destructors.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "suite.h"

extern "C" size_t aclnn_cpu_live_objects(void);

namespace {

// Null results and codes, each with its sentence; nothing here may use the program's own memory of messages.
void every_refusal_is_explained(const char* where) {
  int64_t minus = -1;
  aclrtEventStatus status;
  void* memory = nullptr;
  const auto explained = [&](const char* words) {
    if (said(words)) return;
    std::printf("%s: no sentence about %s\n", where, words);
    std::fflush(stdout);
    std::_Exit(1);
  };
  if (aclCreateTensor(&minus, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &minus, 1, nullptr)) std::_Exit(2);
  explained("viewDims");
  if (aclCreateScalar(nullptr, ACL_FLOAT)) std::_Exit(2);
  explained("value is null");
  if (aclCreateScalar(&minus, ACL_INT4)) std::_Exit(2);
  explained("dataType is 29");
  if (aclCreateIntArray(nullptr, 3) || aclCreateTensorList(nullptr, 1)) std::_Exit(2);
  explained("value is null but 1 are announced");
  if (aclDestroyTensor(reinterpret_cast<aclTensor*>(&minus)) == 0) std::_Exit(2);
  explained("no live aclTensor");
  if (aclrtQueryEvent(&minus, &status) == 0 || aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_NORMAL_ONLY) == 0) std::_Exit(2);
  explained("size is 0");
  if (aclrtSetDevice(9) == 0 || aclrtSynchronizeStream(&minus) == 0) std::_Exit(2);
  explained("no live aclrtStream");
  if (aclrtMemcpy2d(1, 2, 3) != 207000) std::_Exit(2);
  explained("not part of this library");
}

struct AtTheEnd {
  explicit AtTheEnd(const char* name) : where(name) {}
  ~AtTheEnd() { every_refusal_is_explained(where); }
  const char* where;
};

const AtTheEnd after_main("a static destructor");

void at_exit() { every_refusal_is_explained("atexit"); }

void all_alive(size_t count) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<const aclScalar*> made(count);
  for (size_t i = 0; i < count; ++i) {
    double value = static_cast<double>(i);
    made[i] = aclCreateScalar(&value, ACL_DOUBLE);
    EXPECT(reinterpret_cast<int64_t>(made[i]) > 0);
  }
  EXPECT(aclnn_cpu_live_objects() == count);
  std::vector<const aclScalar*> sorted = made;
  std::sort(sorted.begin(), sorted.end());
  EXPECT(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  for (const aclScalar* one : made) OK(aclDestroyScalar(one));
  EXPECT(aclnn_cpu_live_objects() == 0);
  for (const aclScalar* one : made) OK(aclDestroyScalar(one));  // once more, which is tolerated
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::fprintf(stderr, "%zu alive at once, %.2f s\n", count, took.count());
}

}  // namespace

int main(int count, char** words) {
  std::atexit(at_exit);
  std::thread([] {
    static thread_local const AtTheEnd at_its_end("a destructor of a thread");
    (void)at_its_end;
    every_refusal_is_explained("a thread");
  }).join();
  all_alive(count > 1 ? static_cast<size_t>(std::atol(words[1])) : 1000);
  std::puts("fine");
}
