"""Cases that every fast kernel takes, and executors for them. Needs nothing that is optional."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import aclnn
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32
from aclnn.contract.cases import Case
from aclnn.ops.conv_tbc import conv_tbc_backward_case
from aclnn.ops.convolution import convolution_backward_case
from aclnn.ops.elu import elu_backward_case
from aclnn.ops.lstm import lstm_backward_case
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_backward_case

LARGE = [
    *(elu_backward_case((67, 1031), 1.3, 0.7, 1.1, dtype=d) for d in (FLOAT32, FLOAT16, BFLOAT16)),
    *(thnn_fused_lstm_cell_backward_case(70, 130, dtype=d) for d in (FLOAT32, FLOAT16)),
    *(
        convolution_backward_case(batch=4, in_channels=24, out_channels=32, size=14, padding=1, dtype=d)
        for d in (FLOAT32, FLOAT16, BFLOAT16)
    ),
    *(
        convolution_backward_case(batch=4, in_channels=24, out_channels=24, groups=24, size=28, padding=1, dtype=d)
        for d in (FLOAT32, FLOAT16, BFLOAT16)
    ),
    *(conv_tbc_backward_case(50, 4, 60, 32, 3, 1, dtype=d) for d in (FLOAT32, FLOAT16, BFLOAT16)),
    *(lstm_backward_case(9, 6, 20, 40, 2, True, dtype=d) for d in (FLOAT32, FLOAT16)),
    lstm_backward_case(9, 6, 20, 40, batch_first=True, lengths=(9, 8, 8, 4, 1, 0)),
    lstm_backward_case(12, 1, 30, 70),
]


def executor(case: Case, filled: dict[str, Any], engine: str = "auto") -> aclnn.Executor:
    given = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.fresh) or None
    return getattr(aclnn, case.op.python)._plan(given, out, case.device, engine, True)


def assert_green(file: str, level: str) -> None:
    """The quick tests of a file are, where ACLNN_MAX_ISA allows no more than a level."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", file]
    environment = {**os.environ, "ACLNN_MAX_ISA": level}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout[-3000:]
