"""What the measurements are held against: PyTorch's time is 1."""

from __future__ import annotations

GEOMETRIC_MEAN = {
    ("convolution", "float32"): 0.85,
    ("convolution", "bfloat16"): 0.67,
    ("convolution", "float16"): 0.10,
    ("conv_tbc", "float32"): 0.90,
    ("lstm", "float32"): 0.92,
    ("lstm", "float16"): 0.70,
    ("lstm_cell", "float32"): 0.30,
    ("lstm_cell", "float16"): 0.30,
    ("elu", "float32"): 0.85,
    ("elu", "float16"): 0.85,
    ("elu", "bfloat16"): 0.85,
}
"""At most this for the geometric mean over the shapes, outputs given."""

STREAMS = 0.65
"""At most this of the time that two jobs take one after the other."""

SHARE = {("lstm", "float32", "seq20-batch256-1024"): 0.9, ("elu", "float32", "huge"): 0.8}
"""At least this much of what the machine can do."""
