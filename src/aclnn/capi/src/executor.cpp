#include "executor.h"

#include <algorithm>
#include <utility>

#include "check.h"
#include "interpreter.h"
#include "lifecycle.h"
#include "objects.h"
#include "stream.h"

namespace aclnn_cpu {
namespace {

struct Range {
  uint64_t low, high;
  bool is_written;
};

// Whether nothing that is written can share a byte with anything else. "No" means "ask the engine": ranges that meet may
// still be apart, or be allowed to meet.
bool obviously_apart(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.low < b.low; });
  uint64_t end_of_any = 0, end_of_written = 0;
  for (const Range& range : ranges) {
    if (range.low < (range.is_written ? end_of_any : end_of_written)) return false;
    end_of_any = std::max(end_of_any, range.high);
    if (range.is_written) end_of_written = std::max(end_of_written, range.high);
  }
  return true;
}

// An address the program set after phase 1, on the tensor itself.
void* late_address(const Part& part) {
  void* address = nullptr;
  tensors().with(part.handle, [&](const Tensor& tensor) { address = tensor.data; });
  return address;
}

// Where a run takes place: the workspace, its size, then every part.
std::vector<int64_t> addresses_of(const Executor& executor, void* workspace, uint64_t workspace_size) {
  std::vector<int64_t> addresses;
  addresses.reserve(2 + executor.parts.size());
  addresses.push_back(reinterpret_cast<int64_t>(workspace));
  addresses.push_back(static_cast<int64_t>(workspace_size));
  for (const Part& part : executor.parts) {
    void* address = part.address == nullptr && !part.is_empty ? late_address(part) : part.address;
    addresses.push_back(reinterpret_cast<int64_t>(address));
  }
  return addresses;
}

// A late address counts from the first run on that was taken; one that was refused may be set again.
void keep_late_addresses(Executor& executor, const std::vector<int64_t>& addresses) {
  for (size_t i = 0; i < executor.parts.size(); ++i) {
    executor.parts[i].address = reinterpret_cast<void*>(addresses[2 + i]);
  }
}

// Whether work may run on these addresses beyond doubt; the engine decides the rest.
bool are_fine(const Executor& executor, const std::vector<int64_t>& addresses) {
  std::vector<Range> ranges;
  ranges.reserve(executor.parts.size() + 1);
  const uint64_t workspace = static_cast<uint64_t>(addresses[0]);
  if (executor.planned.workspace_size > 0) {
    ranges.push_back({workspace, workspace + static_cast<uint64_t>(addresses[1]), true});  // whole: kernels may use all
  }
  for (size_t i = 0; i < executor.parts.size(); ++i) {
    const Part& part = executor.parts[i];
    if (part.is_empty) continue;
    const uint64_t start = static_cast<uint64_t>(addresses[2 + i]);
    const Range range = {start + static_cast<uint64_t>(part.low), start + static_cast<uint64_t>(part.high),
                         part.is_output};
    if (start == 0 || start % part.itemsize != 0 || part.is_wild || range.high < range.low) return false;
    ranges.push_back(range);
  }
  return obviously_apart(std::move(ranges));
}

std::vector<Use> uses_of(const Executor& executor, const std::vector<int64_t>& addresses) {
  std::vector<Use> uses;
  for (size_t i = 0; i < executor.parts.size(); ++i) {
    const Part& part = executor.parts[i];
    const auto* start = reinterpret_cast<const char*>(addresses[2 + i]);
    if (part.is_empty || start == nullptr) continue;
    uses.push_back({start + part.low, start + part.high, part.name()});
  }
  if (addresses[0] != 0 && addresses[1] > 0) {
    const auto* start = reinterpret_cast<const char*>(addresses[0]);
    uses.push_back({start, start + addresses[1], "workspace"});
  }
  return uses;
}

// Whether a workspace is memory of the size that phase 1 asked for. Null is fine where none is needed, whatever its size.
bool is_workspace(const void* workspace, uint64_t size, uint64_t needed) {
  if (workspace == nullptr) return needed == 0;
  return size >= needed && size <= UINTPTR_MAX / 2 - reinterpret_cast<uintptr_t>(workspace);
}

Outcome not_this_executor(const Operator& op, const void* handle, const Executor* found) {
  std::string why = "the executor is not alive; it has run, was destroyed, or never was one";
  if (found != nullptr) {
    why = std::string("the executor was made by ") + found->op.name + "GetWorkspaceSize";
  } else if (has_run(handle)) {
    why = "the executor has already run; aclSetAclOpExecutorRepeatable lets one run again";
    say(std::string(op.name) + ": " + why + ".");
  }
  return {ACLNN_ERR_INNER, std::string(op.name) + ": " + why + "."};
}

// The rules about workspace and addresses stand in the engine, with their sentences; here is only what is beyond doubt.
Outcome ask_engine(const Executor& executor, const std::vector<int64_t>& addresses) {
  return executor.engine->set_address(executor.planned.executor, {addresses.data(), addresses.size()});
}

// Everything phase 2 asks before it queues the work. Leaves the addresses to run on.
Outcome prepare(Executor& executor, void* workspace, uint64_t size, std::vector<int64_t>* addresses) {
  if (executor.has_run && !executor.repeatable) return not_this_executor(executor.op, nullptr, nullptr);
  *addresses = addresses_of(executor, workspace, size);
  Outcome outcome;
  if (!is_workspace(workspace, size, executor.planned.workspace_size)) {
    outcome = ask_engine(executor, *addresses);
    if (!outcome.ok()) return outcome;
  }
  if (checking()) {
    outcome = check_reach(executor.op.name, uses_of(executor, *addresses));
    if (!outcome.ok()) return outcome;
  }
  if (*addresses == executor.accepted) return {};
  if (!are_fine(executor, *addresses)) {
    outcome = ask_engine(executor, *addresses);
    if (!outcome.ok()) return outcome;
  }
  if (executor.repeatable) executor.accepted = *addresses;
  return {};
}

Job job_of(std::shared_ptr<Executor> executor, std::vector<int64_t> addresses, bool last) {
  return [executor = std::move(executor), addresses = std::move(addresses), last] {
    const Visit visit;
    if (!visit.admitted()) return Outcome{ACLNN_ERR_INNER, "the process is exiting; the work was dropped."};
    std::lock_guard<std::mutex> alone(executor->one_at_a_time);
    void*& planned = executor->planned.executor;
    // The last run has it for good before it begins: Python may end this thread in the middle of it.
    return executor->engine->run(last ? std::exchange(planned, nullptr) : planned,
                                 {addresses.data(), addresses.size()}, last);
  };
}

// The same work, with its memory on the list of what must not be freed until it is done.
Job watched(const char* op, std::vector<Use> uses, Job job) {
  auto in_use = std::make_shared<InUse>(op, std::move(uses));
  return [in_use = std::move(in_use), job = std::move(job)] { return job(); };
}

}  // namespace

std::string Part::name() const {
  return element < 0 ? argument : std::string(argument) + "[" + std::to_string(element) + "]";
}

Executor::~Executor() {
  if (planned.executor != nullptr) engine->destroy(planned.executor);
}

std::shared_ptr<Executor> find_executor(const void* handle) {
  std::shared_ptr<Executor> found;
  executors().with(handle, [&](const std::shared_ptr<Executor>& executor) { found = executor; });
  return found;
}

aclnnStatus run_operator(const Operator& op, void* workspace, uint64_t workspace_size, aclOpExecutor* handle,
                         aclrtStream stream_handle) {
  if (handle == nullptr) return fail_null(op.name, "executor", ACLNN_ERR_PARAM_NULLPTR);
  Outcome outcome = operators_are_taken();
  if (!outcome.ok()) return fail(outcome.code, std::string(op.name) + ": " + outcome.sentence);
  auto executor = find_executor(handle);
  if (!executor || &executor->op != &op) return fail(not_this_executor(op, handle, executor.get()));
  const auto stream = find_stream(stream_handle, op.name, ACLNN_ERR_PARAM_INVALID);
  if (!stream) return ACLNN_ERR_PARAM_INVALID;
  WithoutInterpreterLock whoever_holds_the_executor_may_need_it;
  std::lock_guard<std::mutex> hold(executor->lock);
  std::vector<int64_t> addresses;
  outcome = prepare(*executor, workspace, workspace_size, &addresses);
  if (!outcome.ok()) return fail(outcome);
  const bool last = !executor->repeatable;
  Job job = job_of(executor, addresses, last);
  if (checking()) job = watched(op.name, uses_of(*executor, addresses), std::move(job));
  outcome = stream->submit(std::move(job), executor->planned.by);
  if (!outcome.ok()) return fail(outcome.code, std::string(op.name) + ": " + outcome.sentence);
  executor->has_run = true;
  keep_late_addresses(*executor, addresses);
  if (last) {
    std::shared_ptr<Executor> from_table;
    executors().take(handle, &from_table);
    remember_run(handle);
  }
  return 0;
}

}  // namespace aclnn_cpu
