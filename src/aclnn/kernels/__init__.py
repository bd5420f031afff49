"""HOW FAST: ordered kernels per operator. A kernel plans a call, or refuses it with a reason, and runs it."""
