// ELU forward, in place, and backward; the gradient is held against difference quotients of the forward.
//
//   aclnn cxx elu.cpp -o elu && ./elu
#include "acl_raii.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_elu_backward.h"

int main() try {
  const acl::Runtime runtime;
  const acl::Stream stream;
  const auto alpha = acl::scalar(1.5f), scale = acl::scalar(0.9f), input_scale = acl::scalar(1.2f);

  // Away from 0, where ELU has a corner and no derivative.
  acl::Tensor x({2, 3}, {-2.0f, -0.7f, -0.1f, 0.3f, 1.0f, 2.5f});
  acl::Tensor y({2, 3});
  ACL_RUN(aclnnElu, stream, x.get(), alpha.get(), scale.get(), input_scale.get(), y.get());

  // The same, over its own input.
  acl::Tensor in_place({2, 3}, x.read());
  ACL_RUN(aclnnInplaceElu, stream, in_place.get(), alpha.get(), scale.get(), input_scale.get());
  const bool same = in_place.read() == y.read();
  std::printf("in place the result is %s\n", same ? "the same" : "another");

  // loss = Σ w·y, so the gradient of y is w. isResult = true: the backward is given y instead of x.
  const std::vector<float> w = acl::some(6, 0.4f);
  acl::Tensor grad_y({2, 3}, w), grad_x({2, 3});
  ACL_RUN(aclnnEluBackward, stream, grad_y.get(), alpha.get(), scale.get(), input_scale.get(), true, y.get(),
          grad_x.get());
  const auto loss = [&] {
    ACL_RUN(aclnnElu, stream, x.get(), alpha.get(), scale.get(), input_scale.get(), y.get());
    return acl::dot(w, y.read());
  };
  return same && acl::agrees("grad_x", x, grad_x.read(), loss) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
