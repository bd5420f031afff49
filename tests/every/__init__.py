"""One suite over the registry: every operator on every engine, dtype, stride, thread count and instruction set."""
