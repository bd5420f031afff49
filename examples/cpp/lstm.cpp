// A two-layer LSTM: the forward keeps what the backward needs; gradients against difference quotients.
//
//   aclnn cxx lstm.cpp -o lstm && ./lstm
#include <memory>

#include "acl_raii.h"
#include "aclnnop/aclnn_lstm.h"
#include "aclnnop/aclnn_lstm_backward.h"

namespace {

constexpr int64_t kSteps = 4, kBatch = 2, kInput = 3, kHidden = 2, kLayers = 2;

// One tensor of the given shape per layer: gates, states and their tanh are lists like this.
struct PerLayer {
  PerLayer() {
    for (int64_t layer = 0; layer < kLayers; ++layer) tensors.emplace_back(acl::Shape{kSteps, kBatch, kHidden});
  }
  acl::Owned<aclTensorList> list() const {
    std::vector<const acl::Tensor*> members;
    for (const acl::Tensor& tensor : tensors) members.push_back(&tensor);
    return acl::list(members);
  }
  std::vector<acl::Tensor> tensors;
};

// w_ih, w_hh, b_ih, b_hh of every layer, in the order the operator takes them.
std::vector<acl::Tensor> parameters(float phase) {
  std::vector<acl::Tensor> made;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const int64_t width = layer == 0 ? kInput : kHidden;
    for (const acl::Shape& shape : {acl::Shape{4 * kHidden, width}, {4 * kHidden, kHidden}, {4 * kHidden}, {4 * kHidden}}) {
      made.emplace_back(shape);
      made.back().write(acl::some(made.back().size(), phase += 0.3f));
    }
  }
  return made;
}

std::vector<const acl::Tensor*> pointers(const std::vector<acl::Tensor>& tensors) {
  std::vector<const acl::Tensor*> found;
  for (const acl::Tensor& tensor : tensors) found.push_back(&tensor);
  return found;
}

}  // namespace

int main() try {
  const acl::Runtime runtime;
  const acl::Stream stream;
  const bool has_bias = true, train = true, bidirectional = false, batch_first = false;
  const double dropout = 0;

  acl::Tensor input({kSteps, kBatch, kInput}, acl::some(24, 0.3f));
  acl::Tensor h0({kLayers, kBatch, kHidden}, acl::some(8, 0.8f)), c0({kLayers, kBatch, kHidden}, acl::some(8, 1.4f));
  std::vector<acl::Tensor> params = parameters(0.5f), grad_params = parameters(0);
  acl::Tensor output({kSteps, kBatch, kHidden}), hy(h0.shape()), cy(c0.shape());
  const PerLayer i, g, f, o, h, c, tanh_c;
  const auto hx = acl::list({&h0, &c0}), param_list = acl::list(pointers(params));
  const auto i_list = i.list(), g_list = g.list(), f_list = f.list(), o_list = o.list(), h_list = h.list(),
             c_list = c.list(), tanh_c_list = tanh_c.list();

  // loss = Σ w·output + Σ u·hy + Σ v·cy: the three gradients that come into the backward.
  const std::vector<float> w = acl::some(16, 2.1f), u = acl::some(8, 2.6f), v = acl::some(8, 3.3f);
  const auto loss = [&] {
    ACL_RUN(aclnnLSTM, stream, input.get(), param_list.get(), hx.get(), nullptr, has_bias, kLayers, dropout, train,
            bidirectional, batch_first, output.get(), hy.get(), cy.get(), i_list.get(), g_list.get(), f_list.get(),
            o_list.get(), h_list.get(), c_list.get(), tanh_c_list.get());
    return acl::dot(w, output.read()) + acl::dot(u, hy.read()) + acl::dot(v, cy.read());
  };
  std::printf("loss         %.6f\n", loss());

  const acl::Tensor dy(output.shape(), w), dh(hy.shape(), u), dc(cy.shape(), v);
  acl::Tensor grad_input(input.shape()), grad_h0(h0.shape()), grad_c0(c0.shape());
  const auto grad_list = acl::list(pointers(grad_params));
  ACL_RUN(aclnnLstmBackward, stream, input.get(), hx.get(), param_list.get(), dy.get(), dh.get(), dc.get(),
          i_list.get(), g_list.get(), f_list.get(), o_list.get(), h_list.get(), c_list.get(), tanh_c_list.get(),
          nullptr, has_bias, kLayers, dropout, train, bidirectional, batch_first, nullptr, grad_input.get(),
          grad_h0.get(), grad_c0.get(), grad_list.get());

  bool right = acl::agrees("grad_input", input, grad_input.read(), loss);
  right &= acl::agrees("grad_h0", h0, grad_h0.read(), loss);
  right &= acl::agrees("grad_c0", c0, grad_c0.read(), loss);
  const char* const names[] = {"w_ih", "w_hh", "b_ih", "b_hh"};
  for (size_t p = 0; p < params.size(); ++p) {
    right &= acl::agrees(names[p % 4], params[p], grad_params[p].read(), loss);
  }
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
