"""One LSTM cell, backwards and forwards: portable, then compiled."""
