"""LSTM over layers, directions and time, backwards and forwards: portable, then compiled."""
