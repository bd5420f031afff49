// Tensors with memory of their own, and calls written argument by argument.
#pragma once

#include "call.h"

const uint32_t kPoison = 0x7FA5A5A5;  // a NaN

inline Piece make_piece(Draw& draw, const Shape& shape, aclFormat format) {
  Piece piece;
  piece.shape = shape;
  piece.format = format;
  const int64_t step = draw.one_in(4) ? draw.between(1, 3) : 1;
  piece.contiguous = step == 1;
  piece.offset = draw.one_in(4) ? draw.between(0, 5) : 0;
  piece.strides.resize(shape.size());
  int64_t stride = step;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) piece.strides[axis] = stride;
  piece.storage = piece.offset + stride + draw.between(0, 3);
  piece.buffer = std::make_shared<Buffer>(static_cast<size_t>(piece.storage) * sizeof(float));
  return piece;
}

inline Piece input_piece(Draw& draw, const Shape& shape, aclFormat format) {
  Piece piece = make_piece(draw, shape, format);
  for (int64_t i = 0; i < piece.count(); ++i) {
    const float value = draw.real();
    std::memcpy(piece.element(i), &value, sizeof value);
  }
  return piece;
}

// For every step of a variable-length LSTM, how many sequences are still there.
inline Piece batch_sizes_piece(Draw& draw, int64_t steps, int64_t batch) {
  Piece piece = make_piece(draw, {2 * steps}, ACL_FORMAT_ND);  // twice as wide as the floats it is made for
  piece.dtype = ACL_INT64;
  piece.shape = {steps};
  piece.storage /= 2;
  piece.offset /= 2;
  for (int64_t i = 0, there = batch; i < steps; ++i) {
    if (there > 0 && draw.one_in(4)) --there;
    std::memcpy(piece.element(i), &there, sizeof there);
  }
  return piece;
}

inline Piece output_piece(Draw& draw, const Shape& shape, aclFormat format) {
  Piece piece = make_piece(draw, shape, format);
  for (int64_t i = 0; i < piece.count(); ++i) std::memcpy(piece.element(i), &kPoison, sizeof kPoison);
  return piece;
}

// Writes the arguments of a call one after the other, as the header lists them.
class Builder {
 public:
  Builder(Draw& draw, const Operator& op) : draw_(draw) { call_.op = &op; }

  Builder& in(const Shape& shape, aclFormat format = ACL_FORMAT_ND) {
    return tensor(false, input_piece(draw_, shape, format));
  }
  Builder& out(const Shape& shape, aclFormat format = ACL_FORMAT_ND) {
    return tensor(true, output_piece(draw_, shape, format));
  }
  Builder& ints(int64_t value) { return numbers(Kind::ints, {value}); }
  Builder& in_out(const Shape& shape) { return tensor(true, input_piece(draw_, shape, ACL_FORMAT_ND)); }
  Builder& batch_sizes(int64_t steps, int64_t batch) { return tensor(false, batch_sizes_piece(draw_, steps, batch)); }
  Builder& ins(const std::vector<Shape>& shapes) { return list(shapes, false); }
  Builder& outs(const std::vector<Shape>& shapes) { return list(shapes, true); }
  Builder& scalar(double value) {
    Arg arg(Kind::scalar);
    arg.real = static_cast<float>(value);
    return add(std::move(arg));
  }
  Builder& numbers(Kind kind, std::vector<int64_t> values) {
    Arg arg(kind);
    arg.numbers = std::move(values);
    return add(std::move(arg));
  }
  Builder& number(int64_t value) { return numbers(Kind::number, {value}); }
  Builder& real(double value) {
    Arg arg(Kind::real);
    arg.real = value;
    return add(std::move(arg));
  }
  // The last output takes part only where this entry of a mask, or this number, is not 0.
  Builder& only_if(size_t arg, size_t entry = 0) {
    call_.args.back().only_if = {{arg, entry}};
    return *this;
  }
  Builder& null() {
    Arg arg(Kind::tensor);
    arg.is_null = true;
    return add(std::move(arg));
  }
  Call held_to(std::function<std::string(const Call&)> fault) {
    call_.fault = std::move(fault);
    return std::move(call_);
  }

 private:
  Builder& add(Arg arg) {
    call_.args.push_back(std::move(arg));
    return *this;
  }
  Builder& tensor(bool is_output, Piece piece) {
    Arg arg(Kind::tensor, is_output);
    arg.pieces.push_back(std::move(piece));
    return add(std::move(arg));
  }
  Builder& list(const std::vector<Shape>& shapes, bool is_output) {
    Arg arg(Kind::list, is_output);
    for (const Shape& shape : shapes) {
      arg.pieces.push_back((is_output ? output_piece : input_piece)(draw_, shape, ACL_FORMAT_ND));
    }
    return add(std::move(arg));
  }

  Draw& draw_;
  Call call_;
};
