"""Elu, backwards and forwards: portable, then compiled."""
