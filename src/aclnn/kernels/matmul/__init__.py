"""Matmuls on tiles of our own, for vectors of any width."""
