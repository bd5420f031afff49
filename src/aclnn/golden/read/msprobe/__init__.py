"""Dumps of msprobe: every call of ours in a training step, as arguments and results of our operators."""
