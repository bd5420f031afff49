// A call of an operator with memory of its own: built valid, then changed, then judged by what it wrote.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "draw.h"

using Shape = std::vector<int64_t>;

// Memory between guards. Outputs begin as NaNs with a payload no kernel makes: what was not written shows.
struct Buffer {
  static constexpr size_t kGuard = 64;

  explicit Buffer(size_t size) : bytes(size + 2 * kGuard, 0xA5) {}
  unsigned char* data() { return bytes.data() + kGuard; }

  std::vector<unsigned char> bytes, before;
};

struct Piece {
  Shape shape, strides;
  int64_t offset = 0, storage = 0;
  aclDataType dtype = ACL_FLOAT;
  aclFormat format = ACL_FORMAT_ND;
  bool is_null = false, no_data = false, contiguous = true;
  std::shared_ptr<Buffer> buffer;
  const aclTensor* borrowed = nullptr;  // a handle in place of one of its own
  const aclTensor* handle = nullptr;

  size_t itemsize() const { return aclDataTypeSize(dtype); }
  int64_t count() const;
  void* element(int64_t index) const;  // in order of the shape
  double value(int64_t index) const;   // of a float32 piece
  const aclTensor* create();
  void destroy() const;
};

enum class Kind { tensor, list, scalar, ints, flags, number, real };

// An output's switch: an entry of a mask, or a number that is one.
struct Switch {
  size_t arg, entry;
};

struct Arg {
  explicit Arg(Kind kind, bool is_output = false) : kind(kind), is_output(is_output) {}

  Kind kind;
  bool is_output;
  std::vector<Switch> only_if;    // one or none: off, the output is neither validated nor written
  std::vector<Piece> pieces;      // of a tensor or a list
  std::vector<int64_t> numbers;   // of an array, or the one number
  double real = 0;
  aclDataType scalar_type = ACL_FLOAT;
  std::vector<unsigned char> bits;  // of a scalar, where `real` is not what it is
  bool is_null = false;
  const void* borrowed = nullptr;
  const void* handle = nullptr;

  const void* create();
  void destroy() const;
};

struct Call;

// The two phases of one operator.
struct Operator {
  const char* name;
  int (*plan)(const Call&, uint64_t*, aclOpExecutor**);
  int (*run)(void*, uint64_t, aclOpExecutor*, aclrtStream);
};

struct Call {
  const Operator* op = nullptr;
  std::vector<Arg> args;
  std::function<std::string(const Call&)> fault;  // what is wrong with the outputs of the unchanged call
  bool changed = false;
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  std::vector<unsigned char> workspace;

  void remember();  // the memory as it is
  void create();
  void destroy();
  int plan() { return op->plan(*this, &workspace_size, &executor); }
  int run(aclrtStream stream);

  bool takes_part(const Arg& output) const;
  bool untouched() const;         // no byte of any buffer has changed
  std::string outcome() const;    // what is wrong after a success; nothing if all is right

  template <class Object>
  const Object* object(size_t i) const {
    return static_cast<const Object*>(args[i].handle);
  }
  const aclTensor* in(size_t i) const { return object<aclTensor>(i); }
  aclTensor* out(size_t i) const { return const_cast<aclTensor*>(object<aclTensor>(i)); }
  const aclTensorList* list(size_t i) const { return object<aclTensorList>(i); }
  aclTensorList* out_list(size_t i) const { return const_cast<aclTensorList*>(object<aclTensorList>(i)); }
  const aclScalar* scalar(size_t i) const { return object<aclScalar>(i); }
  const aclIntArray* ints(size_t i) const { return object<aclIntArray>(i); }
  const aclBoolArray* flags(size_t i) const { return object<aclBoolArray>(i); }
  int64_t number(size_t i) const { return args[i].numbers[0]; }
  const Piece& piece(size_t i) const { return args[i].pieces[0]; }
};

// A valid call of any operator, by chance.
Call valid_call(Draw& draw);

// The operator of a name; null if there is none.
const Operator* find_operator(const std::string& name);

// The calls of a file that tests/hostile/c_cases.py wrote, with memory of their own each time.
std::vector<Call> read_calls(const char* file);

// What a call has written: the memory of every output, in hexadecimal digits.
std::string written(const Call& call);

// Another call: one of its arguments is replaced, by anything.
void change(Call& call, Draw& draw, const std::vector<const void*>& handles);
