"""What kernels of several families plan with: places in a workspace, conversions, sums, strides."""
