"""Settings from the environment, the line per run, and what is only logged. Each is read once, so in a new process."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import aclnn

CALL = (
    "import numpy as np, aclnn; x = np.ones((2, 3), np.float32); "
    "print(aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, False, x).explain()); "
    "aclnn.elu_backward(x, 1.0, 1.0, 1.0, False, x)"
)


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("ACLNN_")}, **variables}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False)


def test_product_and_engine_come_from_the_environment() -> None:
    serves = "numpy" if find_spec("numba") is None else "numba"
    assert run(CALL).stdout.startswith(f"aclnnEluBackward on Atlas A2: kernel {serves}")
    ended = run(CALL, ACLNN_PRODUCT="ascend910_93", ACLNN_ENGINE="reference")
    assert ended.stdout.startswith("aclnnEluBackward on Atlas A3: kernel reference")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ACLNN_PRODUCT", "A9", "there is no product 'A9'; choose one of Atlas A2 (A2)"),
        ("ACLNN_ENGINE", "gpu", "there is no engine 'gpu'; choose one of auto, fast, numpy, reference"),
        ("ACLNN_NUM_THREADS", "many", "ACLNN_NUM_THREADS is 'many'; it must be a whole number"),
    ],
)
def test_a_wrong_variable_is_an_error_that_lists_the_choices(variable: str, value: str, says: str) -> None:
    ended = run(CALL, **{variable: value})
    assert ended.returncode != 0
    assert f"[161002 ACLNN_ERR_PARAM_INVALID] {says}" in ended.stderr


def test_verbose_is_one_parseable_line_per_run() -> None:
    assert not run(CALL).stderr
    double = CALL.replace("np.float32", "float") + "; aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, False, x).run()"
    ended = run(double, ACLNN_VERBOSE="1", ACLNN_PRODUCT="cpu")
    lines = ended.stderr.splitlines()
    assert len(lines) == 2
    for line in lines:
        head, op, shapes, kernel, refused, plan_us, run_us = line.split(",")
        assert (head, op, kernel) == ("aclnn", "aclnnEluBackward", "kernel=numpy")
        assert shapes == "gradOutput=float64:2x3 selfOrResult=float64:2x3 gradInput=float64:2x3"
        assert refused.startswith("refused=")
        assert re.fullmatch(r"plan_us=[\d.]+", plan_us)
        assert re.fullmatch(r"run_us=[\d.]+", run_us)


def test_a_refusal_with_commas_keeps_the_line_parseable(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from aclnn.runtime import verbose

    x = np.ones(3, np.float32)
    plan = aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, False, x).plan
    object.__setattr__(plan, "refused", (("one", "it takes this, that, and those"), ("two", "no")))
    try:
        verbose.report(plan, 1.0, 2.0)
    finally:
        aclnn.cache_clear()
    fields = capfd.readouterr().err.strip().split(",")
    assert fields[4:] == ["refused=one:it takes this; that; and those|two:no", "plan_us=1.0", "run_us=2.0"]


def test_a_strided_output_that_is_documented_as_contiguous_is_logged_once_per_plan_and_computed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ones = np.ones((2, 3, 4), np.float32)
    weight, bias = np.ones((1, 4, 4), np.float32), np.zeros(4, np.float32)
    expected = aclnn.conv_tbc_backward(ones, ones[:, :, :4], weight, bias, 0)
    aclnn.cache_clear()
    out = (np.empty((2, 3, 8), np.float32)[..., ::2], np.empty((1, 4, 4), np.float32), np.empty(4, np.float32))
    with caplog.at_level(logging.WARNING, logger="aclnn"):
        for _ in range(2):
            aclnn.conv_tbc_backward(ones, ones, weight, bias, 0, out=out)
        assert [r.getMessage() for r in caplog.records] == [
            "aclnnConvTbcBackward: gradInput is not contiguous; the documents of Atlas A2 ask for a contiguous one "
            "(computed all the same)"
        ]
        aclnn.conv_tbc_backward(ones, ones, weight, bias, 0, out=out, product="cpu")
        assert len(caplog.records) == 1
    assert all((a == b).all() for a, b in zip(out, expected, strict=True))


def test_a_message_names_the_argument_and_what_it_is() -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(aclnn.AclnnError, match="aclnnEluBackward: alpha is a str; it must be a number"):
        aclnn.elu_backward(x, "1", 1.0, 1.0, False, x)  # type: ignore[arg-type]
    g = np.ones((1, 1, 1), np.float32)
    with pytest.raises(aclnn.AclnnError, match=r"out has 2 elements; it must be a tuple of 3 \(grad_input"):
        aclnn.conv_tbc_backward(g, g, g, g[0, 0], 0, out=(g, g))


def test_public_names_are_the_documented_ones() -> None:
    assert dir(aclnn) == sorted(aclnn.__all__)
    assert all(getattr(aclnn, name) is not None for name in aclnn.__all__)
