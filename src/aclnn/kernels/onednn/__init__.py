"""oneDNN: its library, and programs made of its primitives."""
