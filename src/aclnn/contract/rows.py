"""Sequences that come as rows, [T·B, …] in place of [T, B, …]: the same memory, seen with one axis less.

Contracts and kernels know [T, B, …] alone. Every door turns rows into that before the contract looks, and hands fresh
outputs back as rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aclnn.base.language import Text
from aclnn.base.tensor import TensorSpec

ALSO = Text(
    "2 ([T·B, …], T the length of the batch sizes and B the batch of hx, without batchFirst)",
    "2（[T·B, …]，T为batchSizes的长度，B为hx的batch，且batchFirst为false）",
)


@dataclass(frozen=True)
class Rows:
    """Which arguments of an operator may be rows: all of them only where the first one is."""

    args: tuple[str, ...]
    steps: str  # the tensor whose length is T; without it no rows are taken
    states: str  # the list of tensors [·, B, ·]
    unless: str  # the flag that forbids rows

    def in_steps(self, values: Mapping[str, Any]) -> dict[str, TensorSpec]:
        """Those that are rows, as [T, B, …]. One that does not fit is left out, and refused by its rank."""
        steps, first = values.get(self.steps), values.get(self.args[0])
        if steps is None or steps.rank != 1 or values.get(self.unless) or first is None or first.rank != 2:
            return {}
        counts = steps.shape[0], self._batch(values, steps.shape[0], first.shape[0])
        given = ((name, values.get(name)) for name in self.args)
        return {name: split(spec, *counts) for name, spec in given if spec is not None and are_rows(spec, *counts)}

    def _batch(self, values: Mapping[str, Any], steps: int, rows: int) -> int:
        """B, as the states have it; where there are none, as the rows of the steps have it."""
        states = next((s for s in values.get(self.states) or () if s is not None), None)
        if states is not None and states.rank == 3:
            return states.shape[1]  # type: ignore[no-any-return]
        return rows // steps if steps else 0


def split(spec: TensorSpec, steps: int, batch: int) -> TensorSpec:
    """[T·B, …] as [T, B, …]."""
    (_, *rest), (stride, *others) = spec.shape, spec.strides
    return spec._replace(shape=(steps, batch, *rest), strides=(batch * stride, stride, *others))


def are_rows(spec: TensorSpec, steps: int, batch: int) -> bool:
    return spec.rank == 2 and spec.shape[0] == steps * batch
