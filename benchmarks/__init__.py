"""How fast the operators are beside PyTorch and JAX. `aclnn bench` runs this."""
