"""The most memory that this process has touched, for programs that tests start."""

from __future__ import annotations

import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_kilobytes() -> int:
    """On Linux getrusage would count whoever started this process too: a test of it would follow the tests before."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
