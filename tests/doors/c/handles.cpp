// Objects: made, read, destroyed once, twice, in lists, after aclFinalize; and everything that is no object.
#include <set>

#include "suite.h"

namespace {

void tensors() {
  const int64_t view[] = {2, 3}, strides[] = {1, 2}, storage[] = {8};
  aclTensor* tensor = aclCreateTensor(view, 2, ACL_FLOAT16, strides, 2, ACL_FORMAT_NCHW, storage, 1, nullptr);
  EXPECT(tensor != nullptr);
  int64_t* found = nullptr;
  uint64_t count = 0;
  OK(aclGetViewShape(tensor, &found, &count));
  EXPECT(count == 2 && found[0] == 2 && found[1] == 3);
  delete[] found;
  OK(aclGetViewStrides(tensor, &found, &count));
  EXPECT(count == 2 && found[0] == 1 && found[1] == 2);
  delete[] found;
  OK(aclGetStorageShape(tensor, &found, &count));
  EXPECT(count == 1 && found[0] == 8);
  delete[] found;
  int64_t offset = 0;
  OK(aclGetViewOffset(tensor, &offset));
  aclFormat format = ACL_FORMAT_UNDEFINED;
  OK(aclGetFormat(tensor, &format));
  aclDataType dtype = ACL_DT_UNDEFINED;
  OK(aclGetDataType(tensor, &dtype));
  EXPECT(offset == 2 && format == ACL_FORMAT_NCHW && dtype == ACL_FLOAT16);
  void* address = &offset;
  OK(aclGetRawTensorAddr(tensor, &address));
  EXPECT(address == nullptr);
  OK(aclSetRawTensorAddr(tensor, &offset));
  OK(aclGetRawTensorAddr(tensor, &address));
  EXPECT(address == &offset);
  OK(aclInitTensor(tensor, storage, 1, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, storage, 1, nullptr));
  OK(aclGetDataType(tensor, &dtype));
  OK(aclGetViewStrides(tensor, &found, &count));
  EXPECT(dtype == ACL_BF16 && count == 1 && found[0] == 1);
  delete[] found;
  EXPECT_CODE(161001, aclGetViewOffset(nullptr, &offset));
  EXPECT_CODE(161001, aclGetViewOffset(tensor, nullptr));
  OK(aclDestroyTensor(tensor));
  OK(aclDestroyTensor(tensor));  // twice is tolerated
  EXPECT_CODE(161002, aclGetViewOffset(tensor, &offset));
  EXPECT(said("aclGetViewOffset: tensor is 0x"));
  EXPECT_CODE(161002, aclInitTensor(tensor, storage, 1, ACL_BF16, nullptr, 0, ACL_FORMAT_ND, storage, 1, nullptr));
}

void tensors_that_cannot_be() {
  const int64_t negative[] = {2, -1}, huge[] = {int64_t(1) << 40, int64_t(1) << 40}, one[] = {1};
  EXPECT(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr) == nullptr);
  EXPECT(said("viewDims is null but 2 dimensions are announced"));
  EXPECT(aclCreateTensor(one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 2, nullptr) == nullptr);
  EXPECT(aclCreateTensor(negative, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr) == nullptr);
  EXPECT(said("viewDims is [2, -1]"));
  EXPECT(aclCreateTensor(huge, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr) == nullptr);
  EXPECT(aclCreateTensor(huge, uint64_t(1) << 60, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr) == nullptr);
  aclTensor* rank0 = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  EXPECT(rank0 != nullptr);
  OK(aclDestroyTensor(rank0));
}

void scalars_and_arrays() {
  double value = 1.5;
  aclScalar* scalar = aclCreateScalar(&value, ACL_DOUBLE);
  EXPECT(scalar != nullptr);
  EXPECT(aclCreateScalar(nullptr, ACL_FLOAT) == nullptr);
  EXPECT(aclCreateScalar(&value, static_cast<aclDataType>(5)) == nullptr);
  EXPECT(said("dataType is 5"));
  uint64_t size = 0;
  const int64_t numbers[] = {1, 2, 3};
  aclIntArray* integers = aclCreateIntArray(numbers, 3);
  OK(aclGetIntArraySize(integers, &size));
  EXPECT(size == 3);
  const bool truths[] = {true, false};
  aclBoolArray* bools = aclCreateBoolArray(truths, 2);
  OK(aclGetBoolArraySize(bools, &size));
  EXPECT(size == 2);
  const float reals[] = {0.5f};
  aclFloatArray* floats = aclCreateFloatArray(reals, 1);
  OK(aclGetFloatArraySize(floats, &size));
  EXPECT(size == 1);
  EXPECT(aclCreateIntArray(nullptr, 3) == nullptr);
  aclIntArray* empty = aclCreateIntArray(nullptr, 0);
  OK(aclGetIntArraySize(empty, &size));
  EXPECT(size == 0);
  const aclScalar* members[] = {scalar, nullptr};
  aclScalarList* list = aclCreateScalarList(members, 2);
  OK(aclGetScalarListSize(list, &size));
  EXPECT(size == 2);
  OK(aclDestroyScalarList(list));
  EXPECT_CODE(161002, aclGetScalarListSize(list, &size));
  OK(aclDestroyScalar(scalar));  // the list took it along
  OK(aclDestroyIntArray(integers));
  OK(aclDestroyIntArray(empty));
  OK(aclDestroyBoolArray(bools));
  OK(aclDestroyFloatArray(floats));
}

void lists_and_their_members() {
  const int64_t one[] = {1};
  const auto make = [&] { return aclCreateTensor(one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr); };
  aclTensor *first = make(), *second = make();
  const aclTensor* members[] = {first, second};
  aclTensorList* list = aclCreateTensorList(members, 2);
  OK(aclDestroyTensor(first));
  aclTensor* newcomer = make();  // may live where the first one did, but is another object
  OK(aclDestroyTensorList(list));
  OK(aclDestroyTensorList(list));
  int64_t offset = 0;
  OK(aclGetViewOffset(newcomer, &offset));
  EXPECT_CODE(161002, aclGetViewOffset(second, &offset));
  OK(aclDestroyTensor(newcomer));
  EXPECT(aclCreateTensorList(nullptr, 2) == nullptr);
}

void what_is_no_handle() {
  int on_the_stack = 0;
  std::vector<int> heap(4);
  const int64_t one[] = {1};
  float value = 1;
  aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
  const void* others[] = {&on_the_stack, heap.data(), reinterpret_cast<void*>(1), reinterpret_cast<void*>(~0ull),
                          reinterpret_cast<void*>(0xA1F0000000000001ull),
                          reinterpret_cast<void*>(0x4400000000000000ull), scalar, "text"};
  for (const void* other : others) {
    const auto* tensor = static_cast<const aclTensor*>(other);
    int64_t offset = 0;
    EXPECT_CODE(161002, aclDestroyTensor(tensor));
    EXPECT_CODE(161002, aclGetViewOffset(tensor, &offset));
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_CODE(161002, aclnnEluBackwardGetWorkspaceSize(tensor, scalar, scalar, scalar, true, tensor,
                                                         const_cast<aclTensor*>(tensor), &size, &executor));
    EXPECT(said("aclnnEluBackward: gradOutput is 0x"));
    EXPECT(executor == nullptr);
  }
  OK(aclDestroyScalar(scalar));
  OK(aclDestroyTensor(nullptr));
  OK(aclDestroyTensorList(nullptr));
  OK(aclDestroyScalar(nullptr));
  OK(aclDestroyAclOpExecutor(nullptr));
  (void)one;
}

void handles_never_come_back() {
  const int64_t one[] = {1};
  std::set<aclTensor*> seen;
  for (int i = 0; i < 1000; ++i) {
    aclTensor* tensor = aclCreateTensor(one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr);
    EXPECT(seen.insert(tensor).second);
    OK(aclDestroyTensor(tensor));
  }
}

// Programs keep handles in an int64, and tell them from addresses by nothing at all.
void handles_are_positive_numbers_and_no_addresses() {
  float value = 1;
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  OK(aclrtCreateStream(&stream));
  OK(aclrtCreateEvent(&event));
  aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
  aclIntArray* array = aclCreateIntArray(nullptr, 0);
  const void* handles[] = {scalar, array, stream, event};
  for (const void* handle : handles) {
    const int64_t number = static_cast<int64_t>(reinterpret_cast<intptr_t>(handle));
    EXPECT(number > 0 && number >> 56 != 0);  // no process has addresses of more than 56 bits
  }
  const int64_t kept = static_cast<int64_t>(reinterpret_cast<intptr_t>(stream));
  OK(aclrtSynchronizeStream(reinterpret_cast<aclrtStream>(kept)));
  OK(aclrtDestroyStream(stream));
  OK(aclrtDestroyEvent(event));
  OK(aclDestroyScalar(scalar));
  OK(aclDestroyIntArray(array));
}

// As many objects are alive as memory holds; programs that never destroy a scalar go on for long.
void very_many_are_alive() {
  float value = 1;
  std::vector<aclScalar*> made((1 << 20) + 5000);
  for (aclScalar*& scalar : made) {
    scalar = aclCreateScalar(&value, ACL_FLOAT);
    EXPECT(scalar != nullptr);
  }
  for (const aclScalar* scalar : made) OK(aclDestroyScalar(scalar));
  EXPECT_CODE(161002, aclDestroyScalar(reinterpret_cast<aclScalar*>(made.data())));
}

// More than any memory holds: null, and a sentence about memory.
void too_large_to_be() {
  const int64_t one[] = {1};
  EXPECT(aclCreateIntArray(one, UINT64_MAX / 2) == nullptr);
  EXPECT(said("aclCreateIntArray: out of memory"));
}

void messages() {
  aclGetRecentErrMsg();
  EXPECT(std::strcmp(aclGetRecentErrMsg(), "") == 0);
  int64_t offset = 0;
  aclGetViewOffset(nullptr, &offset);
  aclGetFormat(nullptr, nullptr);
  EXPECT(std::strcmp(aclGetRecentErrMsg(), "aclGetFormat: tensor is null; it must be given.\n"
                                           "aclGetViewOffset: tensor is null; it must be given.") == 0);
  EXPECT(std::strcmp(aclGetRecentErrMsg(), "") == 0);
  for (int i = 0; i < 1000; ++i) aclGetFormat(nullptr, nullptr);
  EXPECT(std::strlen(aclGetRecentErrMsg()) < 1000);
}

void numbers() {
  EXPECT(aclDataTypeSize(ACL_FLOAT) == 4 && aclDataTypeSize(ACL_BF16) == 2 && aclDataTypeSize(ACL_COMPLEX128) == 16);
  EXPECT(aclDataTypeSize(ACL_DT_UNDEFINED) == 0 && aclDataTypeSize(static_cast<aclDataType>(999)) == 0);
  EXPECT(aclFloatToFloat16(1.0f) == 0x3C00 && aclFloat16ToFloat(0x3C00) == 1.0f);
}

}  // namespace

int main() {
  tensors();
  tensors_that_cannot_be();
  scalars_and_arrays();
  lists_and_their_members();
  what_is_no_handle();
  handles_never_come_back();
  handles_are_positive_numbers_and_no_addresses();
  very_many_are_alive();
  too_large_to_be();
  messages();
  numbers();
  OK(aclnnInit(nullptr));
  OK(aclnnFinalize());
  OK(aclInit(nullptr));
  const int64_t one[] = {1};
  aclTensor* late = aclCreateTensor(one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr);
  OK(aclFinalize());
  OK(aclDestroyTensor(late));
  std::puts("fine");
}
