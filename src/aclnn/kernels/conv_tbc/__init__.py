"""Convolutions along time, backwards and forwards: portable, then with what convolutions have."""
