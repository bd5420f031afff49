"""`python -m tests.every.bits > file`: a hash of the outputs of drawn calls, per operator and engine.

Written before a change and after it, the two files are equal if the change kept every bit. An engine that refuses a
call, or an operator that refuses its contents, has its code in place of a hash.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import warnings
from typing import Any

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import HIDDEN
from tests.every.draw import drawn
from tests.harness import bits

ENGINES = ("auto", "fast", "numpy", "reference")


def digest(case: Case, engine: str, seed: int) -> str:
    filled = fill(case, seed)
    try:
        call(case, filled, engine)
    except aclnn.AclnnError as refused:
        return str(refused.code)
    return hashlib.sha256(b"".join(bits(case, filled))).hexdigest()[:24]


def call(case: Case, filled: dict[str, Any], engine: str) -> None:
    """Through the public function, into the outputs of the case."""
    given = {a.snake: filled[a.name] for a in case.op.inputs if a.python != HIDDEN}
    out = tuple(filled[a.name] for a in case.op.fresh)
    written = {"out": out if len(out) > 1 else out[0]} if out else {}
    getattr(aclnn, case.op.python)(**given, **written, product=case.device, engine=engine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="of each operator on each engine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("operators", nargs="*", help="all of them, unless some are named")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for op in [ops.find(name) for name in asked.operators] or ops.all_ops():
        for i, case in enumerate(drawn(op, asked.seed, asked.calls)):
            print(op.name, i, *(f"{engine}={digest(case, engine, i)}" for engine in ENGINES), flush=True)


if __name__ == "__main__":
    main()
