"""What is asked of every operator, engine and thread count. test_planted.py shows that each question can be failed."""

from __future__ import annotations

import warnings

import aclnn
from aclnn.contract.cases import Case, fill
from tests.harness import assert_sound, bits, call

ENGINES = ("auto", "fast", "numpy", "reference")
REASONS = (
    "no such kernel is installed",  # numba is not there, or the family has none yet
    *("it takes", "empty", "none is wanted", "gradBias alone", "one of float32"),
)
"""Parts of the sentences with which engine fast may refuse a valid call."""


def serving(case: Case, engine: str) -> str | None:
    """The kernel that takes the call; None where engine fast refuses it for a reason that is known."""
    filled = fill(case)
    given = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.fresh) or None
    try:
        return getattr(aclnn, case.op.python)._plan(given, out, case.device, engine, False).kernel
    except aclnn.AclnnError as refused:
        if engine == "fast" and any(reason in refused.message for reason in REASONS):
            return None
        raise


def assert_right(case: Case, engine: str, threads: int = 2, seed: int = 0) -> None:
    """Within the allowed error, and nothing written elsewhere."""
    with warnings.catch_warnings(), aclnn.threads(threads):
        warnings.simplefilter("ignore")  # advice about dropout
        if serving(case, engine):
            assert_sound(case, engine, seed)


def assert_same_bits(case: Case, engine: str, seed: int = 1) -> None:
    """The same bits every time, and on any number of threads, which oneDNN alone does not promise."""
    found = set()
    for threads in (1, 2, 2, 3):
        with warnings.catch_warnings(), aclnn.threads(threads):
            warnings.simplefilter("ignore")
            kernel = serving(case, engine)
            if kernel is None:
                return
            filled = fill(case, seed)
            call(case, filled, engine=engine)
            found.add((threads if kernel == "onednn" else "any number", *bits(case, filled)))
    assert len(found) == len({threads for threads, *_ in found}), f"{kernel} gave other bits"
