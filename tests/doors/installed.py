"""An installed prefix for the tests that need one, and the environment that its set_env.sh makes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from aclnn.capi.install import install
from tests.doors.toolchain import built


@cache
def prefix() -> Path:
    """One for all tests of a process; its path has a space and a quote."""
    kept = tempfile.TemporaryDirectory(prefix="aclnn-test-")
    _kept.append(kept)
    return install(built(), Path(kept.name) / "it's here" / "latest")


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def sourced(folder: Path, **more: str) -> dict[str, str]:
    """What a shell has after `. set_env.sh`, with nothing of ours but that."""
    clean = {"PATH": os.environ["PATH"], "ACLNN_CACHE_DIR": str(folder / "no cache"), **more}
    command = ["sh", "-c", '. "$1"; env -0', "sh", str(folder / "set_env.sh")]
    printed = subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout
    return dict(entry.split("=", 1) for entry in printed.split("\0") if entry)
