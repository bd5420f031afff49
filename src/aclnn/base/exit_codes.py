"""Exit codes of the command, and which of several holds."""

from __future__ import annotations

from collections.abc import Iterable

RIGHT, MISMATCH, BAD_INPUT, OURS, INTERRUPTED = 0, 1, 2, 3, 130

_REFUSED = range(161000, 162000)  # codes of calls that are themselves wrong


def of(code: int) -> int:
    """The exit code for an aclnn return code: what is refused is the input's fault, all else is ours."""
    return RIGHT if code == 0 else BAD_INPUT if code in _REFUSED else OURS


def worst(codes: Iterable[int]) -> int:
    """The code of many: a mismatch that was found stays found, whatever else went wrong; then what is ours.

    >>> worst([0, 2, 1, 3]), worst([0, 2, 3]), worst([2, 0]), worst([])
    (1, 3, 2, 0)
    """
    found = set(codes)
    return next((code for code in (INTERRUPTED, MISMATCH, OURS, BAD_INPUT) if code in found), RIGHT)
