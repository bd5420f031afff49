"""Who lies where in a workspace."""

from __future__ import annotations

from aclnn.kernels.native.memory import LINE, aligned

LINE_ELEMENTS = LINE // 4  # of a cache line: rooms begin with one

# Processors fetch ahead of who goes on in even steps, past the end of what is its own; and a line that another core
# writes comes back from there, which takes 20 ns or, from another last cache, 150.
AHEAD = 1 << 18  # elements
FEW_ELEMENTS, FEW_STEPS = 1 << 14, 8  # with fewer of them in a row, nothing is fetched ahead


class Arena:
    """Plans who lies where in a workspace: bytes that are given back serve again."""

    def __init__(self) -> None:
        self._free: list[tuple[int, int]] = []  # (offset, size) of gaps, in order, never touching
        self._end = 0

    @property
    def size(self) -> int:
        """What to ask the caller for: workspaces come at any address."""
        return self._end + LINE if self._end else 0

    def reserve(self, size: int) -> int:
        """The offset of `size` bytes: the smallest gap they fit into, else the end."""
        size = _lines(size)
        fitting = [gap for gap in self._free if gap[1] >= size]
        if not fitting:
            self._end += size
            return self._end - size
        offset, room = min(fitting, key=lambda gap: gap[1])
        self._free.remove((offset, room))
        if room > size:
            self.release(offset + size, room - size)
        return offset

    def release(self, offset: int, size: int) -> None:
        """Gives bytes back."""
        size = _lines(size)
        gaps = sorted([*self._free, (offset, size)])
        self._free = []
        for start, room in gaps:
            if self._free and sum(self._free[-1]) == start:
                start, room = self._free[-1][0], self._free.pop()[1] + room
            self._free.append((start, room))


def _lines(size: int) -> int:
    """The bytes of the lines that hold `size` bytes; an empty buffer has one too, so that no other lies around it."""
    return aligned(max(size, 1))


def gap_behind(elements: int, steps: int) -> int:
    """How many elements nobody uses behind those of a thread that goes over them in so many even steps."""
    return AHEAD if elements >= FEW_ELEMENTS and steps >= FEW_STEPS else 0


def spread(elements: int) -> int:
    """As many elements in an odd number of cache lines: what lies so far apart gets different places of the first
    cache, where an even number, in the end a power of two, would bring all to a few."""
    return (in_lines(elements) // LINE_ELEMENTS | 1) * LINE_ELEMENTS


def in_lines(elements: int) -> int:
    """As many elements in whole cache lines."""
    return -(-elements // LINE_ELEMENTS) * LINE_ELEMENTS
