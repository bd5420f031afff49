"""Kernels one after the other, each on its threads: see native/launch_sequence.py."""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import MOST_PLACES
from aclnn.kernels.source.calls import address_of, launch, pointer
from aclnn.kernels.source.indirect import words


def run(
    lo: int,
    hi: int,
    workspace: Any,
    tensor1: Any,
    tensor2: Any,
    tensor3: Any,
    tensor4: Any,
    tensor5: Any,
    tensor6: Any,
    table: Any,
) -> None:
    """The table has: where to say that something was found, and to count shares; the address of GOMP_parallel; how many
    kernels there are; for each its entry, block, threads and number of pointers; for each of these its slot, its place
    and bytes behind that. A kernel that finds something is the last."""
    places = words(8)  # MOST_PLACES and one more
    places[0] = (address_of(workspace) + 63) // 64 * 64
    places[1], places[2], places[3] = address_of(tensor1), address_of(tensor2), address_of(tensor3)
    places[4], places[5], places[6] = address_of(tensor4), address_of(tensor5), address_of(tensor6)
    places[MOST_PLACES] = table[0]
    found, parallel, at = pointer(table[0]), table[1], 3
    found[0] = 0
    for _ in range(table[2]):
        entry, threads, pointers = table[at], table[at + 2], table[at + 3]
        block = pointer(table[at + 1])
        at += 4
        for _ in range(pointers):
            block[table[at]] = places[table[at + 1]] + table[at + 2]
            at += 3
        found[1] = 0
        launch(parallel, entry, address_of(block), threads)
        if found[0] != 0:
            return
