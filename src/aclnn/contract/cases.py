"""Valid calls, and data to fill them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from aclnn.base.device import DEFAULT, Device
from aclnn.base.geometry import Array
from aclnn.base.tensor import Tensor, TensorSpec
from aclnn.contract.call import Call, Value
from aclnn.contract.model import Arg, Op


@dataclass(frozen=True)
class Case:
    """A call without memory: every argument by vendor name, tensors as specs."""

    op: Op
    values: Mapping[str, Any]
    device: Device = DEFAULT
    note: str = field(default="", compare=False)
    data: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Contents that matter (batchSizes): arrays, or functions of a shape and a generator."""

    @property
    def call(self) -> Call:
        return Call(self.values, self.device)

    def in_steps(self) -> Case:
        """The same case, what comes as rows as the contract knows it."""
        changed = {} if self.op.rows is None else self.op.rows.in_steps(self.values)
        return replace(self, values={**self.values, **changed}) if changed else self

    def but(self, note: str = "", /, device: Device | None = None, **changed: Value) -> Case:
        """The same case with some values changed."""
        return replace(self, values={**self.values, **changed}, note=note, device=device or self.device)

    def seen(self, note: str, /, **views: tuple[tuple[int, ...], int, int | None]) -> Case:
        """The same case with tensors that lie otherwise: their strides, offset and storage (None: nobody says)."""
        names = ("strides", "offset", "storage")
        specs = {n: self.values[n]._replace(**dict(zip(names, view, strict=True))) for n, view in views.items()}
        return self.but(note, **specs)


def fill(case: Case, seed: int = 0) -> dict[str, Any]:
    """The case's arguments with memory: Tensors in place of specs, everything else as it is.

    Gradients are never all ones and never equal to an input; outputs hold NaN, so that what was not written shows.
    """
    rng = np.random.default_rng(seed)

    def contents(arg: Arg) -> Any:
        value = case.values[arg.name]
        return _each(arg, value, lambda spec: _tensor(spec, arg, rng, case.data)) if arg.is_tensor else value

    return {arg.name: contents(arg) for arg in case.op.args}


def views(filled: Mapping[str, Any], op: Op) -> dict[str, Any]:
    """The numpy views of filled tensors, by argument."""
    return {arg.name: _each(arg, filled[arg.name], lambda tensor: tensor.view) for arg in op.tensors}


def _each(arg: Arg, value: Any, make: Callable[[Any], Any]) -> Any:
    """What is made of a tensor, or of every tensor of a list; None of None."""
    if value is None:
        return None
    return [None if v is None else make(v) for v in value] if arg.kind == "tensor_list" else make(value)


def kept(arrays: Mapping[str, Any], op: Op) -> dict[str, Any]:
    """The same arrays, those that the operator updates in place as copies: what was given, even after a run."""
    return {**arrays, **{a.name: arrays[a.name].copy() for a in op.outputs if a.updated}}


def _tensor(spec: TensorSpec, arg: Arg, rng: np.random.Generator, data: Mapping[str, Any]) -> Tensor:
    """A tensor of the spec on storage of its own. One that leaves its storage keeps it, unfilled, to be refused."""
    high = -1 if spec.is_empty else spec.extent()[1]
    size = high + 1 if spec.storage is None else spec.storage
    tensor = Tensor.on(np.zeros(size, spec.dtype.numpy), spec._replace(storage=size))
    if tensor.spec.inside_storage:
        tensor.view[...] = _contents(spec, arg, rng, data) if arg.given else np.nan
    return tensor


def _contents(spec: TensorSpec, arg: Arg, rng: np.random.Generator, data: Mapping[str, Any]) -> Any:
    drawn = draw(arg.domain, spec.shape, rng)
    wanted = data.get(arg.name, drawn)
    if callable(wanted):
        return wanted(spec.shape, rng)
    return wanted if np.shape(wanted) in ((), spec.shape) else drawn  # a mutated case may no longer fit its data


def draw(domain: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random contents of an argument's domain."""
    if domain == "gate":
        return rng.uniform(0.05, 0.95, shape)
    if domain == "tanh":
        return rng.uniform(-0.95, 0.95, shape)
    if domain == "weight":
        bound = max((1, *shape[-1:])) ** -0.5
        return rng.uniform(-bound, bound, shape)
    return rng.normal(0, 1, shape)
