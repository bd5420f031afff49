"""Convolutions, backwards and forwards: portable, then direct, on tiles and, for bfloat16, on oneDNN."""
