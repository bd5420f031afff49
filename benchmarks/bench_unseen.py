"""Convolutions that no tuning saw, beside PyTorch: as bench_convolution times them."""

from benchmarks.bench_convolution import DTYPES, makers, work

__all__ = ["DTYPES", "makers", "work"]
