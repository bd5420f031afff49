// The engine behind a program that has another Python inside than the engine's: two versions cannot share a process, so
// what a call reads is copied to memory that the engine's process sees, and what it writes is copied back.
#include <algorithm>
#include <cstring>
#include <memory>

#include "lifecycle.h"
#include "other_process.h"
#include "recorded.h"

namespace aclnn_cpu {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kMost = int64_t{1} << 40;  // bytes that the views of one call may span

OtherProcess& other() {
  static auto* made = new OtherProcess;
  return *made;
}

// One tensor of a call, as the engine says that it lies in memory. Everything in bytes.
struct View {
  bool takes_part, is_output;
  int64_t itemsize, offset;
  std::vector<int64_t> sizes, strides;
  bool is_empty = false;
  int64_t low = 0, high = 0;  // what it reaches, from its address on

  void find_reach() {
    low = high = offset;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 0) is_empty = true;
      const int64_t reach = (sizes[axis] - 1) * strides[axis];
      (reach < 0 ? low : high) += reach;
    }
    high += itemsize;
  }

  bool is_copied() const { return takes_part && !is_empty; }
};

struct RemoteExecutor {
  int64_t number = 0;
  int64_t workspace_size = 0;
  std::vector<View> views;
};

// Reads what plan answers: number, workspace, then every tensor.
RemoteExecutor* read_plan(const std::vector<int64_t>& words) {
  auto executor = std::make_unique<RemoteExecutor>();
  executor->number = words.at(0);
  executor->workspace_size = words.at(1);
  for (size_t next = 2; next < words.size();) {
    View view = {words.at(next) != 0, words.at(next + 1) != 0, words.at(next + 2), words.at(next + 3), {}, {}};
    const auto rank = static_cast<size_t>(words.at(next + 4));
    const auto sizes = words.begin() + static_cast<std::ptrdiff_t>(next + 5);
    next += 5 + 2 * rank;
    if (next > words.size()) throw std::runtime_error("the engine's process answered too little");
    const auto strides = sizes + static_cast<std::ptrdiff_t>(rank);
    view.sizes.assign(sizes, strides);
    view.strides.assign(strides, strides + static_cast<std::ptrdiff_t>(rank));
    view.find_reach();
    executor->views.push_back(std::move(view));
  }
  return executor.release();
}

// Element by element: what lies between them may be another's, or no memory at all.
void copy(const View& view, size_t axis, char* to, const char* from) {
  if (axis == view.sizes.size()) {
    std::memcpy(to, from, static_cast<size_t>(view.itemsize));
  } else if (axis + 1 == view.sizes.size() && view.strides[axis] == view.itemsize) {
    std::memcpy(to, from, static_cast<size_t>(view.sizes[axis] * view.itemsize));
  } else {
    for (int64_t i = 0; i < view.sizes[axis]; ++i) {
      copy(view, axis + 1, to + i * view.strides[axis], from + i * view.strides[axis]);
    }
  }
}

// The first place from `from` on that is as far from a line's beginning as an address is.
int64_t place_like(int64_t address, int64_t from) { return from + (((address - from) % kLine) + kLine) % kLine; }

// Where in the shared memory the workspace and every tensor have their addresses; the end comes last.
std::vector<int64_t> places_of(const RemoteExecutor& executor, Words addresses) {
  std::vector<int64_t> places = {place_like(addresses.data[0], 0), executor.workspace_size};
  int64_t end = places[0] + executor.workspace_size;
  for (size_t i = 0; i < executor.views.size(); ++i) {
    const View& view = executor.views[i];
    places.push_back(0);
    if (!view.is_copied()) continue;
    const int64_t start = place_like(addresses.data[2 + i] + view.low, end);
    places.back() = start - view.low;
    if (view.high - view.low > kMost || start > kMost) end = kMost + 1;
    else end = start + view.high - view.low;
  }
  places.push_back(end);
  return places;
}

void copy_all(const RemoteExecutor& executor, Words addresses, const std::vector<int64_t>& places, char* memory,
              bool back) {
  for (size_t i = 0; i < executor.views.size(); ++i) {
    const View& view = executor.views[i];
    if (!view.is_copied() || (back && !view.is_output)) continue;
    char* here = reinterpret_cast<char*>(addresses.data[2 + i]) + view.offset;
    char* there = memory + places[2 + i] + view.offset;
    back ? copy(view, 0, here, there) : copy(view, 0, there, here);
  }
}

Outcome plan(Words signature, Planned* planned) {
  std::vector<int64_t> answer;
  std::lock_guard<std::mutex> hold(other().lock);
  const Outcome outcome = other().ask(Request::plan, 0, signature, &answer);
  if (!outcome.ok()) return outcome;
  RemoteExecutor* executor = read_plan(answer);
  planned->executor = executor;
  planned->workspace_size = static_cast<uint64_t>(executor->workspace_size);
  return {};
}

Outcome check(void* executor, Words addresses) {
  std::vector<int64_t> answer;
  std::lock_guard<std::mutex> hold(other().lock);
  return other().ask(Request::check, static_cast<RemoteExecutor*>(executor)->number, addresses, &answer);
}

Outcome run_there(const RemoteExecutor& executor, Words addresses) {
  std::vector<int64_t> places = places_of(executor, addresses), answer;
  const int64_t size = places.back();
  places.pop_back();
  if (size > kMost) return {ACLNN_ERR_RUNTIME_ERROR, "the tensors reach over more memory than two processes can share."};
  std::lock_guard<std::mutex> hold(other().lock);
  char* memory = other().shared(static_cast<size_t>(size));
  if (memory == nullptr) return {ACLNN_ERR_RUNTIME_ERROR, "there is no memory to share with the engine's process."};
  copy_all(executor, addresses, places, memory, false);
  const Outcome outcome = other().ask(Request::run, executor.number, {places.data(), places.size()}, &answer);
  if (outcome.ok()) copy_all(executor, addresses, places, memory, true);
  return outcome;
}

void destroy(void* given) {
  const std::unique_ptr<RemoteExecutor> executor(static_cast<RemoteExecutor*>(given));
  const Visit visit;
  if (!visit.admitted()) return;  // in a forked child the lock may be held by a thread of the parent
  std::vector<int64_t> answer;
  std::lock_guard<std::mutex> hold(other().lock);
  other().ask(Request::destroy, executor->number, {nullptr, 0}, &answer);
}

Outcome run(void* executor, Words addresses, bool last) {
  const Outcome outcome = run_there(*static_cast<RemoteExecutor*>(executor), addresses);
  if (last) destroy(executor);
  return outcome;
}

const Engine kRemoteEngine = {plan, check, run, destroy};

}  // namespace

const Engine* start_remote(const Environment& environment, Outcome* reason) {
  const std::string words = ACLNN_CPU_CONTRACTS;
  std::vector<int64_t> contracts((words.size() + sizeof(int64_t)) / sizeof(int64_t)), answer;
  std::memcpy(contracts.data(), words.data(), words.size());
  Outcome outcome = other().start(environment);
  if (outcome.ok()) outcome = other().ask(Request::hello, 0, {contracts.data(), contracts.size()}, &answer);
  if (outcome.ok()) return &kRemoteEngine;
  reason->sentence += " Python " + environment.version + " does not serve beside it either: " + outcome.sentence;
  return nullptr;
}

}  // namespace aclnn_cpu
