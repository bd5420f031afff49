"""Phase 2 of a convolution on oneDNN: tensors in, the program, tensors out."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

from aclnn.base.geometry import Array
from aclnn.kernels import jit, sums
from aclnn.kernels.convolution_program import Parts, Problem
from aclnn.kernels.ports import Port
from aclnn.kernels.program import Session
from aclnn.kernels.strides import address, aligned
from aclnn.kernels.threads import Work, worth


class Execution:
    """What one executor needs to run: memory objects, and launches.

    oneDNN multiplies padding as if it were zeros, and 0·NaN is NaN. Padding meets the weight in gradInput, and the
    result shows it in gradWeight: if one of the two is not finite, the call is for a kernel that leaves padding out.
    """

    def __init__(
        self,
        parts: Parts,
        ports: dict[str, Port],
        problem: Problem,
        outputs: Sequence[str],
        finish: Callable[[dict[str, int]], None] | None = None,  # what is done to the results where they were made
    ):
        self._session = Session(parts.program)
        self._ports, self._buffers, self._finish = ports, parts.buffers, finish
        self._inputs, self._outputs = ([n for n in ports if (n in outputs) == out] for out in (False, True))
        self._copies = {n: [c.work() for c in p.copies] for n, p in ports.items()}
        self._guards = {
            n: Guard(ports[n].spec.size, problem) for n in ("weight", "gradWeight") if n in ports and problem.pads
        }

    def run(self, workspace: Array | None, given: Mapping[str, Array | None]) -> bool:
        """Computes the outputs among the given tensors; False if another kernel must, and they are worth nothing."""
        base = 0 if workspace is None else aligned(address(workspace))
        places = {name: self._place(name, given[name], base) for name in self._ports}
        self._session.bind(base, [(self._buffers[name], place) for name, place in places.items()])
        for name in self._inputs:
            self._copy(name, given[name], places[name])
        if not self._is_finite("weight", places):
            return False
        self._session.run()
        if not self._is_finite("gradWeight", places):
            return False
        if self._finish is not None:
            self._finish(places)
        for name in self._outputs:
            self._copy(name, given[name], places[name])
        return True

    def _place(self, name: str, array: Array | None, base: int) -> int:
        """Where the program meets a tensor."""
        offset = self._buffers[name].offset
        if offset is not None:
            return base + offset
        assert array is not None
        return address(array)

    def _copy(self, name: str, array: Array | None, place: int) -> None:
        """Runs the copies of a port: from the caller's memory for an input, to it for an output."""
        for i, work in enumerate(self._copies[name]):
            assert array is not None
            outside = place if i else address(array)  # a second copy, a rounding, works in place
            work.point(0, *((place, outside) if name in self._outputs else (outside, place)))
            work.run()

    def _is_finite(self, name: str, places: dict[str, int]) -> bool:
        return name not in self._guards or self._guards[name].finds_nothing(places[name])


class Guard:
    """Looks for NaN and Inf in dense memory."""

    def __init__(self, size: int, problem: Problem):
        self._found = ctypes.c_int64()
        entry = jit.load("convert.find_not_finite", jit.POINTER[problem.dtype] + "I")
        arguments = [0, ctypes.addressof(self._found)]
        self._work = Work(entry, size, 1024, arguments, worth(size, sums.PER_THREAD, problem.threads))

    def finds_nothing(self, place: int) -> bool:
        self._found.value = 0
        self._work.point(0, place)
        self._work.run()
        return self._found.value == 0
