// The fused LSTM cell, forward and backward; gradients against difference quotients.
//
//   aclnn cxx lstm_cell.cpp -o lstm_cell && ./lstm_cell
#include "acl_raii.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell.h"
#include "aclnnop/aclnn_thnn_fused_lstm_cell_backward.h"

int main() try {
  const acl::Runtime runtime;
  const acl::Stream stream;

  // Batch 3, hidden size 4. The two gate inputs are what W·x and W·h would be; the gates are i, f, g, o side by side.
  acl::Tensor input_gates({3, 16}, acl::some(48, 0.2f)), hidden_gates({3, 16}, acl::some(48, 0.7f));
  acl::Tensor input_bias({16}, acl::some(16, 1.2f)), hidden_bias({16}, acl::some(16, 1.6f));
  acl::Tensor cx({3, 4}, acl::some(12, 2.0f)), hy({3, 4}), cy({3, 4}), storage({3, 16});

  const std::vector<float> w = acl::some(12, 2.4f), u = acl::some(12, 2.9f);
  const auto loss = [&] {
    ACL_RUN(aclnnThnnFusedLstmCell, stream, input_gates.get(), hidden_gates.get(), cx.get(), input_bias.get(),
            hidden_bias.get(), hy.get(), cy.get(), storage.get());
    return acl::dot(w, hy.read()) + acl::dot(u, cy.read());
  };
  std::printf("loss         %.6f\n", loss());

  const acl::Tensor grad_hy({3, 4}, w), grad_cy({3, 4}, u);
  acl::Tensor grad_gates({3, 16}), grad_cx({3, 4}), grad_bias({16});
  const bool has_bias = true;
  ACL_RUN(aclnnThnnFusedLstmCellBackward, stream, grad_hy.get(), grad_cy.get(), cx.get(), cy.get(), storage.get(),
          has_bias, grad_gates.get(), grad_cx.get(), grad_bias.get());

  bool right = acl::agrees("grad_gates", input_gates, grad_gates.read(), loss);
  right &= acl::agrees("grad_cx", cx, grad_cx.read(), loss);
  right &= acl::agrees("grad_bias", input_bias, grad_bias.read(), loss);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
