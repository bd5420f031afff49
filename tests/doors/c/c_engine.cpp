// An engine in plain C++ for aclnnEluBackward on dense float32 tensors given their result (alpha, scale, inputScale 1):
// the library can then run under sanitizers with no Python in the process. Linking this file puts it in place.
#include <unistd.h>

#include <cstring>

#include "engine.h"

using aclnn_cpu::Engine;
using aclnn_cpu::Outcome;
using aclnn_cpu::Planned;
using aclnn_cpu::Words;

namespace {

constexpr uint64_t kWorkspace = 64;

struct Planned1 {
  int64_t count;
  int64_t* scribble;  // memory of its own, so that a lost executor is a leak
};

// Some of the calls are done where they are brought, if nothing waits before them.
aclnn_cpu::By planned_by(int64_t count) { return count % 2 == 0 ? aclnn_cpu::By::anyone : aclnn_cpu::By::bringer; }

// operator, gradOutput [rank dtype format offset storage size stride], 3 scalars [dtype bits bits], flag, …
Outcome plan(Words signature, Planned* planned) {
  if (signature.count < 2 || signature.data[1] < 0) return {161001, "aclnnEluBackward: gradOutput is null; it must be given."};
  if (signature.data[1] != 1) return {161002, "aclnnEluBackward: this engine takes rank 1."};
  planned->executor = new Planned1{signature.data[6], new int64_t[8]};
  planned->workspace_size = kWorkspace;
  planned->by = planned_by(signature.data[6]);
  return {};
}

Outcome check_workspace(int64_t workspace, uint64_t size) {
  if (workspace == 0) return {161001, "aclnnEluBackward: workspace is null; 64 bytes are needed."};
  if (size < kWorkspace) return {161002, "aclnnEluBackward: workspace has too few bytes but phase 1 asked for 64."};
  if (size > INT64_MAX) return {161002, "aclnnEluBackward: workspace has a size which no memory can hold."};
  return {};
}

Outcome set_address(void* executor, Words addresses) {
  const Outcome workspace = check_workspace(addresses.data[0], static_cast<uint64_t>(addresses.data[1]));
  if (!workspace.ok()) return workspace;
  for (size_t i = 2; i < addresses.count; ++i) {
    if (addresses.data[i] == 0) return {161001, "aclnnEluBackward: a tensor has a null address."};
  }
  const int64_t bytes = static_cast<Planned1*>(executor)->count * 4;
  for (size_t i = 2; i < addresses.count; ++i) {
    const int64_t at = addresses.data[i], workspace = addresses.data[0];
    if (at < workspace + addresses.data[1] && workspace < at + bytes) {
      return {161002, "aclnnEluBackward: a tensor overlaps the workspace; the two must be apart."};
    }
  }
  const int64_t apart = addresses.data[2] - addresses.data[4];
  if (apart != 0 && apart < bytes && apart > -bytes) return {161002, "aclnnEluBackward: gradInput overlaps gradOutput."};
  return {};
}

void destroy(void* executor) {
  auto* planned = static_cast<Planned1*>(executor);
  delete[] planned->scribble;
  delete planned;
}

Outcome run(void* executor, Words addresses, bool last) {
  auto* planned = static_cast<Planned1*>(executor);
  const auto* grad = reinterpret_cast<const float*>(addresses.data[2]);
  const auto* result = reinterpret_cast<const float*>(addresses.data[3]);
  auto* out = reinterpret_cast<float*>(addresses.data[4]);
  std::memset(reinterpret_cast<void*>(addresses.data[0]), 1, kWorkspace);
  if (planned->count > 0 && grad[0] == 777) sleep(60);  // a kernel that takes its time
  for (int64_t i = 0; i < planned->count; ++i) {
    if (grad[i] > 1e30f) {
      if (last) destroy(executor);
      return {161002, "aclnnEluBackward: a value is too large for this engine."};
    }
    out[i] = result[i] > 0 ? grad[i] : grad[i] * (result[i] + 1);
  }
  planned->scribble[0] += 1;
  if (last) destroy(executor);
  return {};
}

const Engine kEngine = {plan, set_address, run, destroy};

__attribute__((constructor)) void use() { aclnn_cpu_use_engine(&kEngine); }

}  // namespace
