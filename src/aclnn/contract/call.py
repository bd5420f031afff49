"""A call as phase 1 sees it: every argument's value, without memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aclnn.base.device import Device
from aclnn.base.scalar import Scalar
from aclnn.base.tensor import TensorSpec

SpecList = tuple[TensorSpec | None, ...]
Value = TensorSpec | SpecList | Scalar | tuple[int, ...] | tuple[bool, ...] | bool | int | float | None


@dataclass(frozen=True, eq=False)
class Call:
    """The values of one call by vendor name, and the device it is checked against."""

    values: Mapping[str, Any]
    device: Device

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def specs(self, name: str) -> tuple[TensorSpec, ...]:
        """The tensors an argument stands for: one, those of a list, or none."""
        value = self.values[name]
        if isinstance(value, TensorSpec):
            return (value,)
        if isinstance(value, tuple):
            return tuple(v for v in value if isinstance(v, TensorSpec))
        return ()

    def named_specs(self, name: str) -> Iterator[tuple[str, TensorSpec]]:
        """The same tensors, each with its name for a message: `params[3]` for an element of a list."""
        value = self.values[name]
        if isinstance(value, TensorSpec):
            yield name, value
        elif isinstance(value, tuple):
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if isinstance(v, TensorSpec))
