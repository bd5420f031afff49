#include "call.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

int destroyed(Kind kind, const void* handle) {
  switch (kind) {
    case Kind::tensor: return aclDestroyTensor(static_cast<const aclTensor*>(handle));
    case Kind::list: return aclDestroyTensorList(static_cast<const aclTensorList*>(handle));
    case Kind::scalar: return aclDestroyScalar(static_cast<const aclScalar*>(handle));
    case Kind::ints: return aclDestroyIntArray(static_cast<const aclIntArray*>(handle));
    case Kind::flags: return aclDestroyBoolArray(static_cast<const aclBoolArray*>(handle));
    default: return 0;
  }
}

// What was made here, alive or destroyed by someone since, or null: that is always fine.
void destroy_object(Kind kind, const void* handle) {
  const int code = destroyed(kind, handle);
  if (code == 0) return;
  std::printf("destroying an object is answered with %d: %s\n", code, aclGetRecentErrMsg());
  std::abort();
}

// No memory is asked for between calls of the interface: where that fails is the interface's business alone.
const void* create_list(std::vector<Piece>& pieces) {
  const aclTensor* members[16];
  size_t count = 0;
  for (Piece& piece : pieces) members[count++] = piece.create();
  const void* made = aclCreateTensorList(members, count);
  if (made == nullptr) for (const Piece& piece : pieces) piece.destroy();
  return made;
}

// Marks the bytes a view reaches; false when it leaves its memory, where no call may succeed.
bool mark(const Piece& piece, std::vector<bool>* reached) {
  for (int64_t i = 0; i < piece.count(); ++i) {
    const auto at = static_cast<unsigned char*>(piece.element(i)) - piece.buffer->bytes.data();
    const auto end = at + static_cast<std::ptrdiff_t>(piece.itemsize());
    if (at < 0 || end > static_cast<std::ptrdiff_t>(reached->size())) return false;
    std::fill(reached->begin() + at, reached->begin() + end, true);
  }
  return true;
}

bool writes_to(const Call& call, const Arg& arg, const Piece& piece, const Buffer* buffer) {
  const bool is_ours = !arg.is_null && arg.borrowed == nullptr && !piece.is_null && piece.borrowed == nullptr;
  return arg.is_output && is_ours && piece.buffer.get() == buffer && call.takes_part(arg);
}

// What a call may write of one buffer; empty when a view leaves it.
std::vector<bool> reach(const Call& call, const Buffer& buffer) {
  std::vector<bool> reached(buffer.bytes.size(), false);
  for (const Arg& arg : call.args) {
    for (const Piece& piece : arg.pieces) {
      if (writes_to(call, arg, piece, &buffer) && !mark(piece, &reached)) return {};
    }
  }
  return reached;
}

}  // namespace

int64_t Piece::count() const {
  uint64_t elements = 1;  // an empty shape may have sizes whose product leaves 64 bits on the way
  for (const int64_t size : shape) elements *= static_cast<uint64_t>(size);
  return static_cast<int64_t>(elements);
}

void* Piece::element(int64_t index) const {
  int64_t place = offset;
  for (size_t axis = shape.size(); axis-- > 0;) {
    place += index % shape[axis] * strides[axis];
    index /= shape[axis];
  }
  return buffer->data() + place * static_cast<int64_t>(itemsize());
}

double Piece::value(int64_t index) const {
  float value;
  std::memcpy(&value, element(index), sizeof value);
  return value;
}

const aclTensor* Piece::create() {
  if (is_null) return handle = nullptr;
  if (borrowed != nullptr) return handle = borrowed;
  return handle = aclCreateTensor(shape.data(), shape.size(), dtype, contiguous ? nullptr : strides.data(), offset,
                                  format, &storage, 1, no_data ? nullptr : buffer->data());
}

void Piece::destroy() const {
  if (!is_null && borrowed == nullptr) destroy_object(Kind::tensor, handle);
}

const void* Arg::create() {
  if (is_null) return handle = nullptr;
  if (borrowed != nullptr) return handle = borrowed;
  switch (kind) {
    case Kind::tensor: return handle = pieces[0].create();
    case Kind::list: return handle = create_list(pieces);
    case Kind::scalar: {
      unsigned char bytes[16] = {};
      if (!bits.empty()) return handle = aclCreateScalar(bits.data(), scalar_type);
      const float small = static_cast<float>(real);
      if (scalar_type == ACL_FLOAT) std::memcpy(bytes, &small, sizeof small);
      else std::memcpy(bytes, &real, sizeof real);
      return handle = aclCreateScalar(bytes, scalar_type);
    }
    case Kind::ints: return handle = aclCreateIntArray(numbers.data(), numbers.size());
    case Kind::flags: {
      unsigned char bytes[16];
      const size_t count = std::min(numbers.size(), sizeof bytes);
      std::copy(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count), bytes);
      return handle = aclCreateBoolArray(reinterpret_cast<const bool*>(bytes), count);
    }
    default: return handle = nullptr;
  }
}

void Arg::destroy() const {
  const bool is_piece = kind == Kind::tensor && !pieces.empty();
  if (is_null || borrowed != nullptr || (is_piece && pieces[0].borrowed != nullptr)) return;  // not ours to destroy
  destroy_object(kind, handle);
}

void Call::remember() {
  for (Arg& arg : args) {
    for (Piece& piece : arg.pieces) piece.buffer->before = piece.buffer->bytes;
  }
}

void Call::create() {
  for (Arg& arg : args) arg.create();
}

void Call::destroy() {
  for (const Arg& arg : args) arg.destroy();
}

int Call::run(aclrtStream stream) {
  workspace.resize(workspace_size);
  return op->run(workspace_size > 0 ? workspace.data() : nullptr, workspace_size, executor, stream);
}

bool Call::takes_part(const Arg& output) const {
  for (const Switch& one : output.only_if) {
    const std::vector<int64_t>& given = args[one.arg].numbers;
    const bool is_byte = args[one.arg].kind == Kind::flags;
    if (one.entry >= given.size()) return false;
    return is_byte ? static_cast<unsigned char>(given[one.entry]) != 0 : given[one.entry] != 0;
  }
  return true;
}

bool Call::untouched() const {
  for (const Arg& arg : args) {
    for (const Piece& piece : arg.pieces) {
      if (piece.buffer->bytes != piece.buffer->before) return false;
    }
  }
  return true;
}

std::string Call::outcome() const {
  for (const Arg& arg : args) {
    if (arg.kind == Kind::flags && arg.borrowed != nullptr) return "";  // who takes part is another's secret
  }
  for (const Arg& arg : args) {
    for (const Piece& piece : arg.pieces) {
      const Buffer& buffer = *piece.buffer;
      const std::vector<bool> reached = reach(*this, buffer);
      if (reached.empty()) return "an output outside its memory was accepted";
      for (size_t i = 0; i < reached.size(); ++i) {
        if (!reached[i] && buffer.bytes[i] != buffer.before[i]) return "a byte outside the outputs was written";
      }
    }
  }
  return changed ? "" : fault(*this);
}
