// The time-batch-channel convolution, forward and backward; gradients against difference quotients.
//
//   aclnn cxx conv_tbc.cpp -o conv_tbc && ./conv_tbc
#include "acl_raii.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"

int main() try {
  const acl::Runtime runtime;
  const acl::Stream stream;

  // 6 steps, batch 2, 3 → 4 channels, kernel 3, one step of padding at either end: again 6 steps.
  const int64_t pad = 1;
  const int8_t cube_math_type = 0;
  acl::Tensor input({6, 2, 3}, acl::some(36, 0.2f)), weight({3, 3, 4}, acl::some(36, 0.9f));
  acl::Tensor bias({4}, acl::some(4, 1.3f)), output({6, 2, 4});

  const std::vector<float> w = acl::some(48, 2.2f);
  const auto loss = [&] {
    ACL_RUN(aclnnConvTbc, stream, input.get(), weight.get(), bias.get(), pad, output.get(), cube_math_type);
    return acl::dot(w, output.read());
  };
  std::printf("loss         %.6f\n", loss());

  acl::Tensor grad_output({6, 2, 4}, w);
  acl::Tensor grad_input(input.shape()), grad_weight(weight.shape()), grad_bias(bias.shape());
  ACL_RUN(aclnnConvTbcBackward, stream, grad_output.get(), input.get(), weight.get(), bias.get(), pad, cube_math_type,
          grad_input.get(), grad_weight.get(), grad_bias.get());

  bool right = acl::agrees("grad_input", input, grad_input.read(), loss);
  right &= acl::agrees("grad_weight", weight, grad_weight.read(), loss);
  right &= acl::agrees("grad_bias", bias, grad_bias.read(), loss);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
