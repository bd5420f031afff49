// The two phases: what each asks, one run or many, other memory in between, errors at the right call.
#include "suite.h"

namespace {

const std::vector<float> kGrad = {-2, -1, 0.5f, 1}, kResult = {-0.5f, -0.25f, 0.5f, -0.75f};

void null_arguments() {
  Elu elu(kGrad, kResult);
  aclScalar* one = elu.one.get();
  aclOpExecutor* executor = nullptr;
  uint64_t size = 77;
  EXPECT_CODE(161001, aclnnEluBackwardGetWorkspaceSize(elu.grad.get(), one, one, one, true, elu.result.get(),
                                                       elu.out.get(), nullptr, &executor));
  EXPECT(said("aclnnEluBackward: workspaceSize is null; it must be given."));
  EXPECT_CODE(161001, aclnnEluBackwardGetWorkspaceSize(elu.grad.get(), one, one, one, true, elu.result.get(),
                                                       elu.out.get(), &size, nullptr));
  EXPECT_CODE(161001, aclnnEluBackwardGetWorkspaceSize(nullptr, one, one, one, true, elu.result.get(), elu.out.get(),
                                                       &size, &executor));
  EXPECT(said("aclnnEluBackward: gradOutput is null; it must be given."));
  EXPECT(size == 77 && executor == nullptr);  // nothing is written on failure
  EXPECT_CODE(161001, aclnnEluBackward(nullptr, 0, nullptr, nullptr));
}

void one_run(aclrtStream stream) {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(elu.run(stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));
  EXPECT_CODE(561000, elu.run(stream));
  EXPECT(said("it has run"));
  OK(aclDestroyAclOpExecutor(elu.executor));  // it is gone already
  EXPECT_CODE(561000, aclSetAclOpExecutorRepeatable(elu.executor));
  int garbage = 0;
  EXPECT_CODE(561000, aclnnEluBackward(nullptr, 0, reinterpret_cast<aclOpExecutor*>(&garbage), stream));
  EXPECT_CODE(161002, aclDestroyAclOpExecutor(reinterpret_cast<aclOpExecutor*>(&garbage)));
}

void never_run() {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(aclDestroyAclOpExecutor(elu.executor));
  EXPECT_CODE(561000, elu.run(nullptr));
}

void tensors_destroyed_before_the_work_is_done(aclrtStream stream) {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(elu.run(stream));
  elu.grad.reset();
  elu.result.reset();
  elu.out.reset();
  elu.one.reset();
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));
}

void workspace_rules(aclrtStream stream) {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  if (elu.size > 0) {
    EXPECT_CODE(161001, aclnnEluBackward(nullptr, elu.size + 64, elu.executor, stream));
    EXPECT(said("workspace is null"));
  }
  EXPECT_CODE(161002, aclnnEluBackward(elu.out_memory.get(), UINT64_MAX, elu.executor, stream));
  EXPECT(said("which no memory can hold"));
  if (elu.size > 0) {
    EXPECT_CODE(161002, aclnnEluBackward(elu.grad_memory.get(), elu.size, elu.executor, stream));
    EXPECT(said("overlaps the workspace"));
    Memory small = device_memory(elu.size);
    EXPECT_CODE(161002, aclnnEluBackward(small.get(), elu.size - 1, elu.executor, stream));
    EXPECT(said("bytes but phase 1 asked for"));
  }
  if (elu.size > 0) {
    OK(elu.run(stream));  // a refused run does not use the executor up
  } else {
    OK(aclnnEluBackward(nullptr, 64, elu.executor, stream));  // no workspace is needed: whatever is said of none
  }
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));
}

void null_addresses(aclrtStream stream) {
  Elu elu(kGrad, kResult);
  OK(aclSetRawTensorAddr(elu.grad.get(), nullptr));
  OK(elu.plan());
  EXPECT_CODE(161001, elu.run(stream));
  EXPECT(said("null address"));
  OK(aclSetRawTensorAddr(elu.grad.get(), elu.grad_memory.get()));  // set later, on the tensor
  OK(elu.run(stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));
}

void in_place_and_overlap(aclrtStream stream) {
  Elu elu(kGrad, kResult);
  OK(aclSetRawTensorAddr(elu.out.get(), elu.grad_memory.get()));
  OK(elu.plan());
  OK(elu.run(stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(host_copy(elu.grad_memory.get(), 4) == elu_gradient(kGrad, kResult));
  Elu shifted(kGrad, kResult);
  Memory wide = device_copy({1, 2, 3, 4, 5});
  OK(aclSetRawTensorAddr(shifted.grad.get(), wide.get()));
  OK(aclSetRawTensorAddr(shifted.out.get(), static_cast<float*>(wide.get()) + 1));
  OK(shifted.plan());
  EXPECT_CODE(161002, shifted.run(stream));
  EXPECT(said("gradInput overlaps gradOutput"));
  OK(aclDestroyAclOpExecutor(shifted.executor));
}

void repeatable_with_other_memory(aclrtStream stream) {
  Elu elu(kGrad, kResult);
  OK(elu.plan());
  OK(aclSetAclOpExecutorRepeatable(elu.executor));
  for (int i = 0; i < 3; ++i) OK(elu.run(stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));

  const std::vector<float> grad2 = {5, 6, -7, 8};
  Memory other_grad = device_copy(grad2), other_out = device_memory(16);
  OK(aclSetInputTensorAddr(elu.executor, 0, elu.grad.get(), other_grad.get()));
  OK(aclSetOutputTensorAddr(elu.executor, 0, elu.out.get(), other_out.get()));
  OK(elu.run(stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(host_copy(other_out.get(), 4) == elu_gradient(grad2, kResult));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));

  OK(aclSetTensorAddr(elu.executor, 2, elu.out.get(), elu.out_memory.get()));
  OK(aclSetTensorAddr(elu.executor, 1, elu.result.get(), elu.result_memory.get()));
  OK(elu.run(stream));
  OK(aclrtSynchronizeStream(stream));
  EXPECT(elu.outcome() == elu_gradient(grad2, kResult));

  OK(aclSetInputTensorAddr(elu.executor, 0, elu.grad.get(), nullptr));
  EXPECT_CODE(0, aclSetRawTensorAddr(elu.grad.get(), nullptr));
  EXPECT_CODE(161001, elu.run(stream));
  OK(aclSetInputTensorAddr(elu.executor, 0, elu.grad.get(), static_cast<float*>(elu.out_memory.get()) + 1));
  EXPECT_CODE(161002, elu.run(stream));  // overlap is looked for after every exchange
  OK(aclDestroyAclOpExecutor(elu.executor));
  OK(aclDestroyAclOpExecutor(elu.executor));
  EXPECT_CODE(561000, elu.run(stream));
}

void exchanges_that_are_none() {
  Elu elu(kGrad, kResult), other({1, 2}, {1, 2});
  OK(elu.plan());
  void* memory = elu.grad_memory.get();
  EXPECT_CODE(161001, aclSetInputTensorAddr(nullptr, 0, elu.grad.get(), memory));
  EXPECT_CODE(161002, aclSetInputTensorAddr(elu.executor, 2, elu.grad.get(), memory));
  EXPECT(said("input 2 of aclnnEluBackward does not exist"));
  EXPECT_CODE(161002, aclSetOutputTensorAddr(elu.executor, 1, elu.grad.get(), memory));
  EXPECT_CODE(161001, aclSetInputTensorAddr(elu.executor, 0, nullptr, memory));
  EXPECT_CODE(161002, aclSetInputTensorAddr(elu.executor, 0, other.grad.get(), memory));
  EXPECT(said("not what aclnnEluBackward planned for gradOutput"));
  const aclTensor* members[] = {elu.grad.get()};
  aclTensorList* list = aclCreateTensorList(members, 1);
  EXPECT_CODE(161002, aclSetDynamicInputTensorAddr(elu.executor, 0, 0, list, memory));
  EXPECT(said("is no list"));
  EXPECT_CODE(161002, aclSetDynamicOutputTensorAddr(elu.executor, 0, 0, list, memory));
  EXPECT_CODE(161002, aclSetDynamicTensorAddr(elu.executor, 9, 0, list, memory));
  OK(aclDestroyTensorList(list));
  OK(aclDestroyAclOpExecutor(elu.executor));
  EXPECT_CODE(561000, aclSetTensorAddr(elu.executor, 0, elu.out.get(), memory));
}

void a_dead_stream() {
  Elu elu(kGrad, kResult);
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtDestroyStream(stream));
  OK(elu.plan());
  EXPECT_CODE(161002, elu.run(stream));
  OK(elu.run(nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  EXPECT(elu.outcome() == elu_gradient(kGrad, kResult));
}

}  // namespace

int main() {
  OK(aclInit(nullptr));
  OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  OK(aclrtCreateStream(&stream));
  null_arguments();
  one_run(stream);
  never_run();
  tensors_destroyed_before_the_work_is_done(stream);
  workspace_rules(stream);
  null_addresses(stream);
  in_place_and_overlap(stream);
  repeatable_with_other_memory(stream);
  exchanges_that_are_none();
  a_dead_stream();
  OK(aclrtDestroyStream(stream));
  OK(aclFinalize());
  std::puts("fine");
}
