"""How the tensors of a call get to where a kernel reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aclnn.base.dtype import DType
from aclnn.base.geometry import Array, contiguous_strides
from aclnn.base.rounding import KEEP
from aclnn.base.tensor import TensorSpec, dense
from aclnn.kernels.native.memory import address
from aclnn.kernels.shared import convert
from aclnn.kernels.shared.convert import Copy
from aclnn.kernels.shared.strides import merged


class Port(NamedTuple):
    """One tensor: used where it lies, or through a dense copy of another dtype, stride or precision."""

    spec: TensorSpec
    strides: tuple[int, ...]  # of what the program meets
    copies: tuple[Copy, ...]  # an input's come before the program runs, an output's after; none: used where it lies


def input_port(spec: TensorSpec, dtype: DType, rounding: int, threads: int, in_order: bool = False) -> Port:
    """A port for an input; `in_order` if the program can only read it contiguously."""
    copy = dense(dtype, spec.shape)
    if spec.dtype is dtype and rounding == KEEP and (spec.is_contiguous if in_order else is_dense(spec)):
        return Port(spec, _strides(spec), ())
    if rounding == KEEP:
        return Port(spec, copy.strides, (convert.plan(spec, copy, threads),))
    rounded = convert.plan_rounding(rounding, copy, threads)
    if spec.dtype is dtype and spec.is_contiguous:
        return Port(spec, copy.strides, (rounded,))
    return Port(spec, copy.strides, (convert.plan(spec, copy, threads), rounded))


def output_port(spec: TensorSpec, dtype: DType, threads: int) -> Port:
    """A port for an output."""
    if spec.dtype is dtype and is_dense(spec):
        return Port(spec, _strides(spec), ())
    made = dense(dtype, spec.shape)
    return Port(spec, made.strides, (convert.plan(made, spec, threads),))


def is_dense(spec: TensorSpec) -> bool:
    """Whether the elements fill one piece of memory, in any order of the axes."""
    return merged(spec.shape, spec.strides)[1] == [[1]]


def _strides(spec: TensorSpec) -> tuple[int, ...]:
    """The strides, with those of axes of size 1 as if they were contiguous: oneDNN looks at them."""
    usual = contiguous_strides(spec.shape)
    return tuple(u if n == 1 else s for n, s, u in zip(spec.shape, spec.strides, usual, strict=True))


class Traffic:
    """The copies of one executor. `offsets` says where in the workspace a port's copy goes."""

    def __init__(self, ports: Mapping[str, Port], offsets: Mapping[str, int | None]):
        self._ports = ports
        self._offsets = [(name, offsets[name] or 0) for name, port in ports.items() if port.copies]
        self._where_they_lie = [name for name, port in ports.items() if not port.copies]
        self._works = {name: [copy.work() for copy in port.copies] for name, port in ports.items()}

    def places(self, arrays: Mapping[str, Array | None], workspace: int) -> dict[str, int]:
        """Where the program meets every tensor."""
        found = {}
        for name, offset in self._offsets:
            found[name] = workspace + offset
        for name in self._where_they_lie:
            array = arrays[name]
            assert array is not None
            found[name] = address(array)
        return found

    def bring(self, name: str, array: Array | None, places: Mapping[str, int]) -> None:
        """Copies an input to its place."""
        self._run(name, array, places, inwards=True)

    def take(self, name: str, array: Array | None, places: Mapping[str, int]) -> None:
        """Copies an output from its place."""
        self._run(name, array, places, inwards=False)

    def _run(self, name: str, array: Array | None, places: Mapping[str, int], inwards: bool) -> None:
        if name not in self._ports:
            return
        assert array is not None
        outside, place = address(array), places[name]
        for work in self._works[name] if outside != place else ():
            work.point(0, *((outside, place) if inwards else (place, outside)))
            work.run()
            outside = place  # a second copy, a rounding, works in place
