"""Products of matrices on tiles of our own, for vectors of any width."""
