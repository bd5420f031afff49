// Calls of the C interface in a row, as a C++ program makes them: both phases and a synchronization each time, on a
// thread that Python does not know.
//
// benchmarks/c_door.py compiles this into a library, and gives the arguments of an operator as 64-bit words: addresses of
// handles, whole numbers, or the bits of a double.
#include <cstdint>
#include <cstring>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_lstm_backward.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell_backward.h"

namespace {

// What a call needs beside the words.
struct Surroundings {
  void* workspace;
  uint64_t room;
  aclrtStream stream;
};

constexpr int kTooLittleRoom = -1;

template <class T>
T as(int64_t word) {
  if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(word);
  if constexpr (std::is_floating_point_v<T>) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  if constexpr (std::is_integral_v<T>) return static_cast<T>(word);
}

template <class... All, class Run, size_t... At>
int one_call(aclnnStatus (*plan)(All...), Run run, const int64_t* words, Surroundings around,
             std::index_sequence<At...>) {
  using Types = std::tuple<All...>;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  if (int code = plan(as<std::tuple_element_t<At, Types>>(words[At])..., &size, &executor)) return code;
  if (size > around.room) return kTooLittleRoom;
  if (int code = run(around.workspace, size, executor, around.stream)) return code;
  return aclrtSynchronizeStream(around.stream);
}

template <class... All, class Run>
int calls(aclnnStatus (*plan)(All...), Run run, const int64_t* words, Surroundings around, int64_t times) {
  int code = 0;
  std::thread([&] {
    constexpr auto arguments = std::make_index_sequence<sizeof...(All) - 2>();  // two are results
    for (int64_t i = 0; i < times && code == 0; ++i) code = one_call(plan, run, words, around, arguments);
  }).join();
  return code;
}

}  // namespace

#define CALLS(name)                                                                                                \
  extern "C" int calls_##name(const int64_t* words, void* workspace, uint64_t room, void* stream, int64_t times) { \
    return calls(name##GetWorkspaceSize, name, words, {workspace, room, stream}, times);                           \
  }

CALLS(aclnnConvTbcBackward)
CALLS(aclnnConvolutionBackward)
CALLS(aclnnEluBackward)
CALLS(aclnnLstmBackward)
CALLS(aclnnThnnFusedLstmCellBackward)
