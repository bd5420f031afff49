// Calls out of a file: words, one call per line, as tests/hostile/c_cases.py writes them.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "call.h"

namespace {

// The words of one line, read as what the place asks for.
class Words {
 public:
  explicit Words(const std::string& line) : line_(line) {}

  std::string word() {
    std::string next;
    line_ >> next;
    return next;
  }
  int64_t number() { return std::strtoll(word().c_str(), nullptr, 10); }
  Shape numbers(int64_t count) {
    Shape found;
    for (int64_t i = 0; i < count; ++i) found.push_back(number());
    return found;
  }
  std::vector<unsigned char> bytes() {
    const std::string digits = word();
    std::vector<unsigned char> found;
    for (size_t i = 1; i + 1 < digits.size(); i += 2) {  // after the x
      found.push_back(static_cast<unsigned char>(std::strtol(digits.substr(i, 2).c_str(), nullptr, 16)));
    }
    return found;
  }

 private:
  std::istringstream line_;
};

Piece read_piece(Words& words) {
  Piece piece;
  piece.is_null = words.word() == "null";
  piece.contiguous = false;
  piece.dtype = static_cast<aclDataType>(words.number());
  piece.format = static_cast<aclFormat>(words.number());
  piece.offset = words.number();
  piece.storage = words.number();
  const int64_t rank = words.number();
  piece.shape = words.numbers(rank);
  piece.strides = words.numbers(rank);
  const std::vector<unsigned char> bytes = words.bytes();
  piece.buffer = std::make_shared<Buffer>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), piece.buffer->data());
  return piece;
}

Arg read_tensors(Words& words, Kind kind) {
  Arg arg(kind, words.word() == "out");
  const int64_t count = words.number();
  arg.is_null = count < 0;
  for (int64_t i = 0; i < count; ++i) arg.pieces.push_back(read_piece(words));
  return arg;
}

Arg read_array(Words& words, Kind kind) {
  Arg arg(kind);
  const int64_t count = words.number();
  arg.is_null = count < 0;
  arg.numbers = words.numbers(count);
  return arg;
}

Arg read_arg(Words& words) {
  const std::string kind = words.word();
  if (kind == "tensor") return read_tensors(words, Kind::tensor);
  if (kind == "list") return read_tensors(words, Kind::list);
  if (kind == "ints") return read_array(words, Kind::ints);
  if (kind == "flags") return read_array(words, Kind::flags);
  Arg arg(kind == "number" ? Kind::number : kind == "real" ? Kind::real : Kind::scalar);
  if (kind == "number") arg.numbers = {words.number()};
  else if (kind == "real") arg.real = std::strtod(words.word().c_str(), nullptr);
  else arg.scalar_type = static_cast<aclDataType>(words.number()), arg.bits = words.bytes();
  return arg;
}

Call read_call(const std::string& line) {
  Words words(line);
  Call call;
  call.op = find_operator(words.word());
  call.changed = true;  // no formula is known here: whoever wrote the file compares
  for (int64_t left = words.number(); left > 0; --left) call.args.push_back(read_arg(words));
  return call;
}

}  // namespace

std::vector<Call> read_calls(const char* file) {
  std::ifstream lines(file);
  std::vector<Call> calls;
  for (std::string line; std::getline(lines, line);) calls.push_back(read_call(line));
  return calls;
}

std::string written(const Call& call) {
  std::string digits;
  char two[3];
  for (const Arg& arg : call.args) {
    for (const Piece& piece : arg.pieces) {
      if (!arg.is_output || piece.is_null) continue;
      const auto& bytes = piece.buffer->bytes;
      for (size_t i = Buffer::kGuard; i < bytes.size() - Buffer::kGuard; ++i) {
        std::snprintf(two, sizeof two, "%02x", bytes[i]);
        digits += two;
      }
      digits += '/';
    }
  }
  return digits;
}
