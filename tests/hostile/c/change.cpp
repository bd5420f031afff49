// What is done to valid calls. Storage stays as large as the memory is: a program that lies about that is beyond help.
#include <limits>

#include "call.h"

namespace {

void lay_out_densely(Piece& piece) {
  uint64_t stride = 1;  // unsigned: sizes may be anything
  piece.strides.resize(piece.shape.size());
  for (size_t axis = piece.shape.size(); axis-- > 0;) {
    piece.strides[axis] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(piece.shape[axis] == 0 ? 1 : piece.shape[axis]);
  }
}

void change_dtype(Piece& piece, Draw& draw) {
  piece.dtype = static_cast<aclDataType>(draw.one_in(4) ? draw.odd_number() : draw.pick({1, 27, 11, 9, 12, 2, 16, 35}));
  const size_t itemsize = piece.itemsize();
  const size_t bytes = piece.buffer->bytes.size() - 2 * Buffer::kGuard;
  if (itemsize > 0) piece.storage = static_cast<int64_t>(bytes / itemsize);
}

void change_rank(Piece& piece, Draw& draw) {
  if (draw.one_in(2) && !piece.shape.empty()) piece.shape.pop_back();
  else piece.shape.insert(piece.shape.begin(), draw.one_in(4) ? 40 : 1, 1);
  lay_out_densely(piece);
  piece.contiguous = true;
}

void change_strides(Piece& piece, Draw& draw) {
  piece.contiguous = false;
  for (int64_t& stride : piece.strides) stride = draw.one_in(2) ? stride : draw.odd_number();
}

void change_size(Piece& piece, Draw& draw) {
  if (piece.shape.empty()) return;
  draw.pick(piece.shape) = draw.odd_number();
  if (piece.contiguous) lay_out_densely(piece);
}

void change_piece(Piece& piece, Draw& draw, const std::vector<const void*>& handles) {
  switch (draw.below(9)) {
    case 0: return change_dtype(piece, draw);
    case 1: return change_rank(piece, draw);
    case 2: return change_strides(piece, draw);
    case 3: return change_size(piece, draw);
    case 4: piece.offset = draw.odd_number(); return;
    case 5: piece.storage = draw.between(-1, piece.storage); return;
    case 6: piece.format = static_cast<aclFormat>(draw.one_in(4) ? draw.odd_number() : draw.between(-1, 50)); return;
    case 7: piece.no_data = true; return;
    default: piece.borrowed = static_cast<const aclTensor*>(draw.pick(handles));
  }
}

void change_list(Arg& arg, Draw& draw) {
  if (arg.pieces.empty() || draw.one_in(3)) return arg.pieces.clear();
  switch (draw.below(3)) {
    case 0: arg.pieces.pop_back(); return;
    case 1: arg.pieces.push_back(draw.pick(arg.pieces)); return;
    default: draw.pick(arg.pieces).is_null = true;
  }
}

void change_numbers(Arg& arg, Draw& draw) {
  switch (draw.below(4)) {
    case 0: arg.numbers.push_back(draw.odd_number()); return;
    case 1: arg.numbers.clear(); return;
    case 2: arg.numbers.assign(100000, draw.odd_number()); return;
    default: arg.numbers.assign(arg.numbers.size(), draw.odd_number());
  }
}

void change_value(Arg& arg, Draw& draw, const std::vector<const void*>& handles) {
  switch (arg.kind) {
    case Kind::list:
      if (arg.pieces.empty() || draw.one_in(2)) return change_list(arg, draw);
      return change_piece(draw.pick(arg.pieces), draw, handles);
    case Kind::tensor:
      if (!arg.pieces.empty()) change_piece(arg.pieces[0], draw, handles);
      return;
    case Kind::scalar:
      if (draw.one_in(2)) arg.scalar_type = static_cast<aclDataType>(draw.between(-1, 40));
      [[fallthrough]];
    case Kind::real:
      arg.real = draw.pick({-1.0, 0.0, 1e308, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL});
      return;
    case Kind::number: arg.numbers[0] = draw.odd_number(); return;
    default: change_numbers(arg, draw);
  }
}

// One tensor in the place of another: the same memory twice.
void alias(Call& call, Draw& draw) {
  Arg &to = draw.pick(call.args), &from = draw.pick(call.args);
  if (to.pieces.empty() || from.pieces.empty()) return;
  const bool is_output = to.is_output;
  to.pieces[0] = from.pieces[0];
  to.is_output = is_output;
}

}  // namespace

void change(Call& call, Draw& draw, const std::vector<const void*>& handles) {
  call.changed = true;
  if (draw.one_in(8)) return alias(call, draw);
  Arg& arg = draw.pick(call.args);
  const bool is_object = arg.kind != Kind::number && arg.kind != Kind::real;
  if (is_object && draw.one_in(6)) {
    arg.is_null = true;
  } else if (is_object && draw.one_in(6)) {
    arg.borrowed = draw.pick(handles);
  } else {
    change_value(arg, draw, handles);
  }
}
