"""What the golden tests share: a case with its right results, and files of it with faults planted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill, kept, views
from aclnn.golden.compare import compare
from aclnn.golden.read.casefile import save_case
from aclnn.golden.result import Comparison
from tests.harness import call

Array = np.ndarray[Any, Any]


class Planted:
    """A case that has been run: arrays by vendor name, inputs as given, outputs as computed."""

    def __init__(self, case: Case, seed: int = 0, engine: str = "auto"):
        self.case, self.op = case, case.op
        filled = fill(case, seed)
        self.given = kept(views(filled, case.op), case.op)
        call(case, filled, engine=engine)
        self.arrays = {name: _copied(value) for name, value in views(filled, case.op).items()}

    def inputs(self, **changed: Any) -> dict[str, Any]:
        """The keyword arguments of the public function, some of them changed."""
        found = {}
        for arg in self.op.inputs:
            if arg.python != "-":
                found[arg.snake] = self.given[arg.name] if arg.is_tensor else self.case.values[arg.name]
        return {**found, **changed}

    def again(self, **changed: Any) -> Any:
        """What the operator computes from changed inputs."""
        return getattr(aclnn, self.op.python)(**self.inputs(**changed))

    def save(self, path: Path, **outputs: Any) -> Path:
        """A case file that claims these outputs for the right inputs."""
        save_case(path, self.op, self.case.call, {**self.arrays, **outputs}, self.given)
        return path

    def compare(self, folder: Path, standard: str = "mixed", **outputs: Any) -> Comparison:
        return compare(self.save(folder / "case.npz", **outputs), standard=standard)


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [None if v is None else v.copy() for v in value]
    return None if value is None else value.copy()


def planted(op: str, seed: int = 0, **sizes: Any) -> Planted:
    return Planted(ops.case_maker(ops.find(op))(**sizes), seed)


def report_of(found: Comparison, output: str) -> Any:
    return next(r for r in found.reports if r.output == output)


def with_arrays(path: Path, **changed: Array | None) -> Path:
    """A case file with arrays put in, or (None) taken out, whatever the case says."""
    with np.load(path) as stored:
        arrays = {**stored, **changed}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path
