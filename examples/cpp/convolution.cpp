// A strided, padded 2-D convolution with groups, forward and backward; gradients against difference quotients.
//
//   aclnn cxx convolution.cpp -o convolution && ./convolution
#include "acl_raii.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_convolution_backward.h"

int main() try {
  const acl::Runtime runtime;
  const acl::Stream stream;

  // N 2, C 4, H 5, W 5; 6 output channels in 2 groups; 3×3 kernel, stride 2, padding 1 → 3×3 outputs.
  acl::Tensor input({2, 4, 5, 5}, acl::some(200, 0.1f), ACL_FORMAT_NCHW);
  acl::Tensor weight({6, 2, 3, 3}, acl::some(108, 0.6f), ACL_FORMAT_NCHW);
  acl::Tensor bias({6}, acl::some(6, 1.1f));
  acl::Tensor output({2, 6, 3, 3}, ACL_FORMAT_NCHW);
  const auto stride = acl::integers({2, 2}), padding = acl::integers({1, 1}), dilation = acl::integers({1, 1});
  const auto output_padding = acl::integers({0, 0}), bias_sizes = acl::integers({6});
  const bool transposed = false;
  const int groups = 2;
  const int8_t cube_math_type = 0;  // keep float32; 1 would round the inputs to HF32

  const std::vector<float> w = acl::some(108, 2.0f);
  const auto loss = [&] {
    ACL_RUN(aclnnConvolution, stream, input.get(), weight.get(), bias.get(), stride.get(), padding.get(),
            dilation.get(), transposed, output_padding.get(), groups, output.get(), cube_math_type);
    return acl::dot(w, output.read());
  };
  std::printf("loss         %.6f\n", loss());

  const bool wanted[] = {true, true, true};
  const acl::Owned<aclBoolArray> mask(aclCreateBoolArray(wanted, 3), aclDestroyBoolArray);
  acl::Tensor grad_output({2, 6, 3, 3}, w, ACL_FORMAT_NCHW);
  acl::Tensor grad_input(input.shape(), ACL_FORMAT_NCHW), grad_weight(weight.shape(), ACL_FORMAT_NCHW), grad_bias({6});
  ACL_RUN(aclnnConvolutionBackward, stream, grad_output.get(), input.get(), weight.get(), bias_sizes.get(),
          stride.get(), padding.get(), dilation.get(), transposed, output_padding.get(), groups, mask.get(),
          cube_math_type, grad_input.get(), grad_weight.get(), grad_bias.get());

  bool right = acl::agrees("grad_input", input, grad_input.read(), loss);
  right &= acl::agrees("grad_weight", weight, grad_weight.read(), loss);
  right &= acl::agrees("grad_bias", bias, grad_bias.read(), loss);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
