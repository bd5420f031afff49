"""What the measurements are held against: PyTorch's time is 1."""

from __future__ import annotations

_CONVOLUTION = {"float32": (0.80, 0.65), "bfloat16": (0.30, 0.67), "float16": (0.20, 0.20)}
_GIVEN = {
    "elu": dict.fromkeys(("float32", "bfloat16", "float16"), (0.60, 0.60)),
    "convolution": _CONVOLUTION,
    "unseen": _CONVOLUTION,
    "conv_tbc": {"float32": (0.85, 0.80)},
    "lstm": {"float32": (0.80, 0.80), "float16": (0.70, 0.70)},
    "lstm_cell": dict.fromkeys(("float32", "float16"), (0.20, 0.20)),
}
_OTHER = {"forward": (0.90, 0.90), "step": (0.85, 0.85)}
"""At most this for the geometric mean over the shapes: with AVX2, with AVX-512."""


def geometric_mean(operator: str, dtype: str, column: str, isa: str) -> float | None:
    """Outputs given, forwards and steps have targets; what fresh memory costs is the system's."""
    found = _GIVEN.get(operator, {}).get(dtype) if column == "given" else _OTHER.get(column)
    return found[isa == "avx512"] if found else None


STREAMS = 0.65
"""At most this of the time that two jobs take one after the other."""

BUSY = 1.2
"""At most this of how many times slower PyTorch becomes beside busy loops."""

SHARE = {("lstm", "float32", "seq20-batch256-1024"): 0.9, ("elu", "float32", "huge"): 0.8}
"""At least this much of what the machine can do."""
