"""Runs that ended well and wait for the next call of their plan, in bounded number.

To make a run takes 0.1 ms, and its first call as much again; but a run keeps native code alive, some of them megabytes.
"""

from __future__ import annotations

from collections import deque

from aclnn.kernels.registry import Run

MOST = 128  # of all plans together: a training step of a ResNet-50 needs 106

Cell = list[Run]
"""Holds a run, until it is emptied to make room for others."""


class IdleRuns:
    """Which runs there are, in the order they were made: who makes one more empties the cell of the oldest.

    Nothing is done when a run is used or kept, which takes less time than keeping count would.
    """

    def __init__(self, most: int = MOST):
        self._cells: deque[Cell] = deque()
        self._most = most

    def cell(self, run: Run) -> Cell:
        made = [run]
        self._cells.append(made)
        self._shrink_to(self._most)
        return made

    def clear(self) -> None:
        """Lets go of every run; one that is at work ends first."""
        self._shrink_to(0)

    def __len__(self) -> int:
        return sum(map(len, self._cells.copy()))

    def _shrink_to(self, most: int) -> None:
        while len(self._cells) > most:
            try:
                self._cells.popleft().clear()
            except IndexError:  # another thread was faster
                return


idle_runs = IdleRuns()
