"""Which instructions kernels may use: the processor's own, up to ACLNN_MAX_ISA.

One machine can so test and measure what lesser ones run. The limit holds for oneDNN and for compiled code alike, and is
part of the key of every cache.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import NamedTuple

from aclnn.base.run_once import once
from aclnn.base.status import invalid

NATIVE = "native"

_VECTORS = ("sse", "avx", "amx", "fma", "f16c", "xop", "sve", "sme")  # what the names of vector instructions begin with
_SSE41 = frozenset({"64bit", "cmov", "cx16", "cx8", "fxsr", "mmx", "sahf", "sse", "sse2", "sse3", "ssse3", "sse4.1"})
_AVX2 = _SSE41 | {"sse4.2", "sse4a", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "crc32", "lzcnt", "movbe", "popcnt"}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


class Level(NamedTuple):
    """A limit: LLVM's name of a processor that has no more, the features that are left, oneDNN's number."""

    processor: str
    features: frozenset[str]
    of_onednn: int


_LEVELS = {
    "x86_64": {
        "sse41": Level("penryn", _SSE41, 0x1),
        "avx2": Level("haswell", _AVX2, 0x7),
        "avx512": Level("skylake-avx512", _AVX512, 0x27),
    },
    "aarch64": {"neon": Level("generic", frozenset({"fp-armv8", "neon"}), 0)},
}
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}


def architecture() -> str:
    """The kind of processor by one name, whatever the system calls it: x86_64, aarch64 or another."""
    machine = platform.machine().lower()
    return _ALIASES.get(machine, machine)


@once
def limit() -> Level | None:
    """What ACLNN_MAX_ISA allows at most; None if it is all that there is."""
    wanted = os.environ.get("ACLNN_MAX_ISA", "").strip().lower() or NATIVE
    levels = _LEVELS.get(architecture(), {})
    if wanted == NATIVE:
        return None
    if wanted not in levels:
        choices = ", ".join([*levels, NATIVE])
        raise invalid(f"ACLNN_MAX_ISA is {wanted!r}; on this processor choose one of {choices}.", "ACLNN_MAX_ISA")
    return levels[wanted]


def target(processor: str, features: Mapping[str, bool]) -> tuple[str, str]:
    """LLVM's name and features for code that runs on this processor, within the limit."""
    level = limit()
    present = {name for name, has in features.items() if has}
    if level is not None and any(name.startswith(_VECTORS) for name in present - level.features):
        processor, present = level.processor, present & level.features
    return processor, ",".join(("+" if name in present else "-") + name for name in sorted(features))


class Vectors(NamedTuple):
    """What tiles of matmuls are made of: the lanes of a vector, and how many lie side by side in a tile."""

    lanes: int
    across: int
    fused: bool  # whether a multiplication and an addition are one instruction
    pairs: bool = False  # whether one multiplies pairs of bfloat16, and adds both products to a float32


def vectors(features: str) -> Vectors:
    """The tiles of a processor, by its features as `target` writes them: six rows of sums, one row of factors and one
    factor fill its registers, 32 with AVX-512 and on ARM, 16 elsewhere."""
    present = set(features.split(","))
    if "+avx512f" in present:
        return Vectors(16, 4, True, "+avx512bf16" in present)
    if {"+avx2", "+fma"} <= present:
        return Vectors(8, 2, True)
    return Vectors(4, 4, True) if architecture() == "aarch64" else Vectors(4, 2, False)
