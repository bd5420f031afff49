"""A planned launch of a kernel: its tables of numbers, its places in the workspace, and how it is aimed at tensors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.kernels.native import jit
from aclnn.kernels.native.abi import FIRST_ARGUMENT
from aclnn.kernels.native.entry import Entry
from aclnn.kernels.native.memory import address
from aclnn.kernels.native.threads import Work
from aclnn.kernels.shared.workspace import Arena

LEFT_OVER = 0.25  # of what a lot would have, if all were equally fast


class Numbers:
    """Tables of int64 that arguments point to; they live as long as this does."""

    def __init__(self) -> None:
        self._kept: list[object] = []

    def put(self, values: Sequence[int] | Array) -> int:
        array = np.array(values, np.int64)
        self._kept.append(array)
        return address(array)


class Launch(NamedTuple):
    """One planned launch. Tensors and buffers come first among its arguments; a buffer is a place in the workspace."""

    name: str
    kinds: str
    items: int
    operands: tuple[str | int | None, ...]  # a tensor, a place in the workspace, or nothing
    tables: tuple[int, ...]
    threads: int
    starts: tuple[int, ...] = ()  # bytes by which an operand begins later

    def load(self) -> Entry:
        """Compiles what is launched, if need be. Raises NoNativeCodeError."""
        return jit.load(self.name, self.kinds)

    def work(self, keep: object) -> Work:
        arguments = [0] * len(self.operands) + list(self.tables)
        return Work(self.load(), self.items, 1, arguments, self.threads, keep)

    def aim(self, work: Work, places: Mapping[str, int], base: int) -> None:
        """Points its work to tensors by name, and to a workspace that begins at `base`."""
        where = []
        for name in self.operands:
            where.append(base + name if isinstance(name, int) else 0 if name is None else places[name])
        if self.starts:
            where = list(map(operator.add, where, self.starts))
        work.block[FIRST_ARGUMENT : FIRST_ARGUMENT + len(where)] = where


def shares(items: int, lots: int, near: bool = False) -> list[int]:
    """Of items, at least as many as lots, that these take: how many shares and lots there are, then the first and the
    end of each share. A lot begins with the same one in every run: what it read and wrote the last time lies in its own
    cache, and not in one that may be far from it (0.96 to 0.98 of the time). A quarter is left for who comes first,
    so that all end together; nothing where all that is written is `near`."""
    bounds = [items * lot // lots for lot in range(lots + 1)]
    late = 0 if near or lots == 1 else LEFT_OVER
    own = [(begin, end - int(late * (end - begin))) for begin, end in itertools.pairwise(bounds)]
    rest = [range(begun, end) for (_, begun), end in zip(own, bounds[1:], strict=True)]
    left = [(i, i + 1) for some in itertools.zip_longest(*rest) for i in some if i is not None]
    return [len(own) + len(left), lots, *itertools.chain(*own, *left)]


class Room(NamedTuple):
    """What planning adds to: the workspace and the tables, for so many threads."""

    arena: Arena
    numbers: Numbers
    threads: int
