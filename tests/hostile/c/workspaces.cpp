// `workspaces FILE`: the calls of the file on workspaces that meet one of their tensors. Each is refused, nothing is
// written, and the same executor then runs on a workspace of its own. Prints the operators that need a workspace.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "call.h"

namespace {

[[noreturn]] void found(const Call& call, const std::string& what) {
  std::printf("%s: %s\n  %s\n", call.op->name, what.c_str(), aclGetRecentErrMsg());
  std::exit(1);
}

bool says(const std::string& said, const char* words) { return said.find(words) != std::string::npos; }

// A phase 2 on a workspace that is no memory of its own: it must be refused before anyone writes to it.
void refused(Call& call, uintptr_t start, uint64_t size, const char* what) {
  aclGetRecentErrMsg();
  const int code = call.op->run(reinterpret_cast<void*>(start), size, call.executor, nullptr);
  const std::string said = aclGetRecentErrMsg();
  aclrtSynchronizeStream(nullptr);
  if (code != 161002) found(call, std::string(what) + " was answered with " + std::to_string(code) + " " + said);
  if (!says(said, "overlaps the workspace")) found(call, std::string(what) + ": " + said);
  if (!call.untouched()) found(call, std::string(what) + " was refused and written");
}

// The bytes from the first to one past the last that a view touches.
std::pair<uintptr_t, uintptr_t> reach(const Piece& piece) {
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int64_t i = 0; i < piece.count(); ++i) {
    const auto at = reinterpret_cast<uintptr_t>(piece.element(i));
    low = std::min(low, at);
    high = std::max(high, at + piece.itemsize());
  }
  return {low, high};
}

void meet(Call& call, const Piece& piece) {
  const uint64_t needed = call.workspace_size;
  const auto [low, high] = reach(piece);
  refused(call, low, needed, "a workspace that begins with a tensor");
  refused(call, high - 1, needed, "a workspace on the last byte of a tensor");
  refused(call, low + 1 - needed, needed, "a workspace whose last byte meets a tensor");
  refused(call, low - needed, needed + 1, "a workspace whose spare byte meets a tensor");
}

void every_tensor(Call& call) {
  for (const Arg& arg : call.args) {
    for (const Piece& piece : arg.pieces) {
      if (!arg.is_null && piece.count() > 0) meet(call, piece);
    }
  }
}

void run_apart(Call& call) {
  if (call.run(nullptr) != 0 || aclrtSynchronizeStream(nullptr) != 0) found(call, "refused on a workspace of its own");
  const std::string fault = call.outcome();
  if (!fault.empty()) found(call, fault);
}

void apart_in_the_end(Call& call) {
  every_tensor(call);
  run_apart(call);
}

// What an executor has accepted once says nothing about another workspace, or about a tensor that has moved.
void repeatable(Call& call) {
  if (aclSetAclOpExecutorRepeatable(call.executor) != 0) found(call, "it cannot be made repeatable");
  run_apart(call);
  call.remember();
  every_tensor(call);
  const Arg& first = call.args[0];
  auto* handle = const_cast<aclTensor*>(first.pieces[0].handle);
  if (aclSetTensorAddr(call.executor, 0, handle, call.workspace.data()) != 0) found(call, "its memory cannot be moved");
  if (call.run(nullptr) != 161002 || !says(aclGetRecentErrMsg(), "overlaps the workspace")) {
    found(call, "a tensor that was moved onto the workspace was accepted");
  }
  if (!call.untouched()) found(call, "a tensor that was moved onto the workspace was written");
}

// The address of the first tensor comes after phase 1, and lies on the workspace.
void late_address(Call& call) {
  auto* handle = const_cast<aclTensor*>(call.args[0].pieces[0].handle);
  aclSetRawTensorAddr(handle, nullptr);
  aclDestroyAclOpExecutor(call.executor);
  if (call.plan() != 0) found(call, "phase 1 wants an address");
  call.workspace.resize(call.workspace_size);
  aclSetRawTensorAddr(handle, call.workspace.data());
  if (call.run(nullptr) != 161002 || !says(aclGetRecentErrMsg(), "overlaps the workspace")) {
    found(call, "a late address on the workspace was accepted");
  }
  aclSetRawTensorAddr(handle, call.args[0].pieces[0].buffer->data());
  run_apart(call);  // a refused address does not stick
}

}  // namespace

int main(int, char** arguments) {
  std::set<std::string> with_workspace;
  for (const auto check : {apart_in_the_end, repeatable, late_address}) {
    for (Call& call : read_calls(arguments[1])) {
      call.remember();
      call.create();
      if (call.plan() != 0) found(call, "a valid call was refused");
      if (call.workspace_size == 0) continue;
      with_workspace.insert(call.op->name);
      check(call);
      aclDestroyAclOpExecutor(call.executor);
      call.destroy();
    }
  }
  for (const std::string& name : with_workspace) std::printf("%s ", name.c_str());
}
