"""Convolutions forwards: the kernels stand beside those backwards."""

from __future__ import annotations

from aclnn.kernels import convolution_fast as convolution_fast
