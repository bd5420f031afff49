// A valid call of each operator, with the formula its outputs are held to where it is short; else they must be whole.
#include <cfloat>

#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"
#include "aclnnop/aclnn_lstm.h"
#include "aclnnop/aclnn_lstm_backward.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell_backward.h"
#include "builder.h"

namespace {

const char* const kUnwritten = "an output was not written";

// Every element of every output that takes part is a number, and another one than before.
std::string whole(const Call& call) {
  for (const Arg& arg : call.args) {
    for (const Piece& piece : arg.pieces) {
      for (int64_t i = 0; arg.is_output && call.takes_part(arg) && i < piece.count(); ++i) {
        if (std::memcmp(piece.element(i), &kPoison, sizeof kPoison) == 0) return kUnwritten;
      }
    }
  }
  return "";
}

// A sum with what bounds its rounding error.
struct Sum {
  double total = 0, size = 0;
  void add(double term) {
    total += term;
    size += std::fabs(term);
  }
};

std::string compare(const Piece& found, int64_t index, const Sum& wanted) {
  const double difference = std::fabs(found.value(index) - wanted.total);
  if (difference <= 64 * FLT_EPSILON * wanted.size + FLT_MIN) return "";  // NaN is not
  return "element " + std::to_string(index) + " is " + std::to_string(found.value(index)) + ", not " +
         std::to_string(wanted.total);
}

double elu(double x, double alpha, double scale, double input_scale) {
  return x > 0 ? scale * x : scale * alpha * std::expm1(x * input_scale);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Sum just(double value) {
  Sum sum;
  sum.add(value);
  return sum;
}

Shape any_shape(Draw& draw) {
  Shape shape;
  for (int64_t rank = draw.between(0, 4); rank > 0; --rank) shape.push_back(draw.between(draw.one_in(20) ? 0 : 1, 5));
  return shape;
}

const Operator kElu = {"aclnnElu", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnEluGetWorkspaceSize(c.in(0), c.scalar(1), c.scalar(2), c.scalar(3), c.out(4), size, executor);
}, aclnnElu};

Call valid_elu(Draw& draw) {
  const Shape shape = any_shape(draw);
  return Builder(draw, kElu).in(shape).scalar(1.5).scalar(1.25).scalar(0.75).out(shape).held_to([](const Call& call) {
    std::string fault;
    for (int64_t i = 0; i < call.piece(0).count() && fault.empty(); ++i) {
      fault = compare(call.piece(4), i, just(elu(call.piece(0).value(i), 1.5, 1.25, 0.75)));
    }
    return fault;
  });
}

const Operator kInplaceElu = {"aclnnInplaceElu", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnInplaceEluGetWorkspaceSize(c.out(0), c.scalar(1), c.scalar(2), c.scalar(3), size, executor);
}, aclnnInplaceElu};

Call valid_inplace_elu(Draw& draw) {
  Call call = Builder(draw, kInplaceElu).in_out(any_shape(draw)).scalar(1).scalar(1).scalar(1).held_to(nullptr);
  std::vector<double> given;
  for (int64_t i = 0; i < call.piece(0).count(); ++i) given.push_back(call.piece(0).value(i));
  call.fault = [given](const Call& done) {
    std::string fault;
    for (size_t i = 0; i < given.size() && fault.empty(); ++i) {
      fault = compare(done.piece(0), static_cast<int64_t>(i), just(elu(given[i], 1, 1, 1)));
    }
    return fault;
  };
  return call;
}

const Operator kEluBackward = {"aclnnEluBackward", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnEluBackwardGetWorkspaceSize(c.in(0), c.scalar(1), c.scalar(2), c.scalar(3), c.number(4) != 0, c.in(5),
                                          c.out(6), size, executor);
}, aclnnEluBackward};

Call valid_elu_backward(Draw& draw) {
  const Shape shape = any_shape(draw);
  Builder builder(draw, kEluBackward);
  builder.in(shape).scalar(1.5).scalar(1.25).scalar(0.75).number(1).in(shape).out(shape);
  return builder.held_to([](const Call& call) {
    std::string fault;
    for (int64_t i = 0; i < call.piece(0).count() && fault.empty(); ++i) {
      const double grad = call.piece(0).value(i), result = call.piece(5).value(i);
      Sum wanted;
      if (result > 0) wanted.add(grad * 1.25);
      else wanted.add(grad * 0.75 * result), wanted.add(grad * 0.75 * 1.5 * 1.25);
      fault = compare(call.piece(6), i, wanted);
    }
    return fault;
  });
}

const Operator kConvolution = {"aclnnConvolution", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnConvolutionGetWorkspaceSize(c.in(0), c.in(1), c.in(2), c.ints(3), c.ints(4), c.ints(5), c.number(6) != 0,
                                          c.ints(7), c.number(8), c.out(9), static_cast<int8_t>(c.number(10)), size,
                                          executor);
}, aclnnConvolution};

std::string convolution_fault(const Call& call) {
  const Shape &x = call.piece(0).shape, &w = call.piece(1).shape, &y = call.piece(9).shape;
  for (int64_t i = 0; i < call.piece(9).count(); ++i) {
    const int64_t n = i / (y[1] * y[2]), o = i / y[2] % y[1], at = i % y[2];
    Sum wanted = just(call.piece(2).value(o));
    for (int64_t c = 0; c < x[1]; ++c) {
      for (int64_t k = 0; k < w[2]; ++k) {
        const int64_t from = at + k - 1;
        if (from < 0 || from >= x[2]) continue;
        wanted.add(call.piece(0).value((n * x[1] + c) * x[2] + from) * call.piece(1).value((o * w[1] + c) * w[2] + k));
      }
    }
    const std::string fault = compare(call.piece(9), i, wanted);
    if (!fault.empty()) return fault;
  }
  return "";
}

std::vector<int64_t> mask(Draw& draw) {
  if (!draw.one_in(3)) return {1, 1, 1};
  return {draw.below(2), draw.below(2), draw.below(2)};
}

struct Sizes {
  explicit Sizes(Draw& draw)
      : batch(draw.between(1, 3)), in(draw.between(1, 4)), out(draw.between(1, 4)), length(draw.between(3, 7)) {}
  int64_t batch, in, out, length;
};

Builder& convolution_settings(Builder& builder) {
  return builder.ints(1).ints(1).ints(1).number(0).ints(0);
}

Call valid_convolution(Draw& draw) {
  const Sizes s(draw);
  Builder builder(draw, kConvolution);
  builder.in({s.batch, s.in, s.length}, ACL_FORMAT_NCL).in({s.out, s.in, 3}, ACL_FORMAT_NCL).in({s.out});
  convolution_settings(builder).number(1).out({s.batch, s.out, s.length}, ACL_FORMAT_NCL).number(0);
  return builder.held_to(convolution_fault);
}

const Operator kConvolutionBackward = {"aclnnConvolutionBackward",
                                       [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnConvolutionBackwardGetWorkspaceSize(
      c.in(0), c.in(1), c.in(2), c.ints(3), c.ints(4), c.ints(5), c.ints(6), c.number(7) != 0, c.ints(8),
      static_cast<int>(c.number(9)), c.flags(10), static_cast<int8_t>(c.number(11)), c.out(12), c.out(13), c.out(14),
      size, executor);
}, aclnnConvolutionBackward};

Call valid_convolution_backward(Draw& draw) {
  const Sizes s(draw);
  Builder builder(draw, kConvolutionBackward);
  builder.in({s.batch, s.out, s.length}, ACL_FORMAT_NCL).in({s.batch, s.in, s.length}, ACL_FORMAT_NCL);
  builder.in({s.out, s.in, 3}, ACL_FORMAT_NCL).ints(s.out);
  convolution_settings(builder).number(1).numbers(Kind::flags, mask(draw)).number(0);
  builder.out({s.batch, s.in, s.length}, ACL_FORMAT_NCL).only_if(10, 0);
  builder.out({s.out, s.in, 3}, ACL_FORMAT_NCL).only_if(10, 1).out({s.out}).only_if(10, 2);
  return builder.held_to(whole);
}

const Operator kConvTbc = {"aclnnConvTbc", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnConvTbcGetWorkspaceSize(c.in(0), c.in(1), c.in(2), c.number(3), c.out(4),
                                      static_cast<int8_t>(c.number(5)), size, executor);
}, aclnnConvTbc};

Call valid_conv_tbc(Draw& draw) {
  const Sizes s(draw);
  Builder builder(draw, kConvTbc);
  builder.in({s.length, s.batch, s.in}).in({3, s.in, s.out}).in({s.out}).number(1).out({s.length, s.batch, s.out});
  return builder.number(0).held_to(whole);
}

const Operator kConvTbcBackward = {"aclnnConvTbcBackward",
                                   [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnConvTbcBackwardGetWorkspaceSize(c.in(0), c.in(1), c.in(2), c.in(3), c.number(4),
                                              static_cast<int8_t>(c.number(5)), c.out(6), c.out(7), c.out(8), size,
                                              executor);
}, aclnnConvTbcBackward};

Call valid_conv_tbc_backward(Draw& draw) {
  const Sizes s(draw);
  Builder builder(draw, kConvTbcBackward);
  builder.in({s.length, s.batch, s.out}).in({s.length, s.batch, s.in}).in({3, s.in, s.out}).in({s.out}).number(1);
  return builder.number(0).out({s.length, s.batch, s.in}).out({3, s.in, s.out}).out({s.out}).held_to(whole);
}

const Operator kLSTM = {"aclnnLSTM", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnLSTMGetWorkspaceSize(c.in(0), c.list(1), c.list(2), c.in(3), c.number(4) != 0, c.number(5),
                                   c.args[6].real, c.number(7) != 0, c.number(8) != 0, c.number(9) != 0, c.out(10),
                                   c.out(11), c.out(12), c.out_list(13), c.out_list(14), c.out_list(15), c.out_list(16),
                                   c.out_list(17), c.out_list(18), c.out_list(19), size, executor);
}, aclnnLSTM};

std::vector<Shape> parameters(int64_t in, int64_t hidden) {
  return {{4 * hidden, in}, {4 * hidden, hidden}, {4 * hidden}, {4 * hidden}};
}

// Variable length or not; a variable-length batch may be given with its steps and sequences on one axis.
struct LstmShapes {
  LstmShapes(Draw& draw, const Sizes& s) : has_batch_sizes(draw.one_in(3)) {
    const bool is_flat = has_batch_sizes && draw.one_in(2);
    const auto sequence = [&](int64_t width) {
      return is_flat ? Shape{s.length * s.batch, width} : Shape{s.length, s.batch, width};
    };
    input = sequence(s.in);
    output = sequence(s.out);
  }
  Builder& batch_sizes(Builder& builder, const Sizes& s) const {
    return has_batch_sizes ? builder.batch_sizes(s.length, s.batch) : builder.null();
  }
  bool has_batch_sizes;
  Shape input, output;
};

Call valid_lstm(Draw& draw) {
  const Sizes s(draw);
  const LstmShapes shapes(draw, s);
  const Shape state = {1, s.batch, s.out}, gate = {s.length, s.batch, s.out};
  Builder builder(draw, kLSTM);
  builder.in(shapes.input).ins(parameters(s.in, s.out)).ins({state, state});
  shapes.batch_sizes(builder, s).number(1).number(1).real(0).number(draw.one_in(4) ? 0 : 1).number(0).number(0);
  builder.out(shapes.output).out(state).out(state);
  for (int i = 0; i < 7; ++i) builder.outs({gate}).only_if(7);
  return builder.held_to(whole);
}

const Operator kLstmBackward = {"aclnnLstmBackward",
                                [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnLstmBackwardGetWorkspaceSize(
      c.in(0), c.list(1), c.list(2), c.in(3), c.in(4), c.in(5), c.list(6), c.list(7), c.list(8), c.list(9), c.list(10),
      c.list(11), c.list(12), c.in(13), c.number(14) != 0, c.number(15), c.args[16].real, c.number(17) != 0,
      c.number(18) != 0, c.number(19) != 0, c.flags(20), c.out(21), c.out(22), c.out(23), c.out_list(24), size,
      executor);
}, aclnnLstmBackward};

Call valid_lstm_backward(Draw& draw) {
  const Sizes s(draw);
  const LstmShapes shapes(draw, s);
  const Shape state = {1, s.batch, s.out}, gate = {s.length, s.batch, s.out};
  Builder builder(draw, kLstmBackward);
  builder.in(shapes.input).ins({state, state}).ins(parameters(s.in, s.out)).in(shapes.output).in(state).in(state);
  for (int i = 0; i < 7; ++i) builder.ins({gate});
  shapes.batch_sizes(builder, s).number(1).number(1).real(0).number(1).number(0).number(0);
  builder.numbers(Kind::flags, {1, 1, 1, 1});
  return builder.out(shapes.input).out(state).out(state).outs(parameters(s.in, s.out)).held_to(whole);
}

const Operator kCell = {"aclnnThnnFusedLstmCell", [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnThnnFusedLstmCellGetWorkspaceSize(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.out(5), c.out(6),
                                                c.out(7), size, executor);
}, aclnnThnnFusedLstmCell};

// cy = f·cx + i·g, the gates from the sums of four terms.
std::string cell_fault(const Call& call) {
  const int64_t hidden = call.piece(2).shape[1];
  for (int64_t i = 0; i < call.piece(2).count(); ++i) {
    const int64_t row = i / hidden * 4 * hidden, column = i % hidden;
    const auto gate = [&](int64_t number) {
      const int64_t c = number * hidden + column;
      const double products = call.piece(0).value(row + c) + call.piece(1).value(row + c);
      return products + call.piece(3).value(c) + call.piece(4).value(c);
    };
    Sum wanted;
    wanted.add(sigmoid(gate(1)) * call.piece(2).value(i));
    wanted.add(sigmoid(gate(0)) * std::tanh(gate(2)));
    wanted.size += 8;  // the gates' own rounding, from sums of at most 8
    const std::string fault = compare(call.piece(6), i, wanted);
    if (!fault.empty()) return fault;
  }
  return whole(call);
}

Call valid_cell(Draw& draw) {
  const Sizes s(draw);
  const Shape gates = {s.batch, 4 * s.out}, state = {s.batch, s.out}, bias = {4 * s.out};
  Builder builder(draw, kCell);
  return builder.in(gates).in(gates).in(state).in(bias).in(bias).out(state).out(state).out(gates).held_to(cell_fault);
}

const Operator kCellBackward = {"aclnnThnnFusedLstmCellBackward",
                                [](const Call& c, uint64_t* size, aclOpExecutor** executor) -> int {
  return aclnnThnnFusedLstmCellBackwardGetWorkspaceSize(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.number(5) != 0,
                                                        c.out(6), c.out(7), c.out(8), size, executor);
}, aclnnThnnFusedLstmCellBackward};

Call valid_cell_backward(Draw& draw) {
  const Sizes s(draw);
  const Shape gates = {s.batch, 4 * s.out}, state = {s.batch, s.out};
  Builder builder(draw, kCellBackward);
  builder.in(state).in(state).in(state).in(state).in(gates).number(draw.one_in(4) ? 0 : 1);
  builder.out(gates).out(state).out({4 * s.out}).only_if(5);
  return builder.held_to(whole);
}

}  // namespace

Call valid_call(Draw& draw) {
  using Maker = Call (*)(Draw&);
  const Maker make = draw.pick<Maker>({valid_elu, valid_inplace_elu, valid_elu_backward, valid_convolution,
                                       valid_convolution_backward, valid_conv_tbc, valid_conv_tbc_backward, valid_lstm,
                                       valid_lstm_backward, valid_cell, valid_cell_backward});
  return make(draw);
}

const Operator* find_operator(const std::string& name) {
  for (const Operator* op : {&kElu, &kInplaceElu, &kEluBackward, &kConvolution, &kConvolutionBackward, &kConvTbc,
                             &kConvTbcBackward, &kLSTM, &kLstmBackward, &kCell, &kCellBackward}) {
    if (name == op->name) return op;
  }
  return nullptr;
}
