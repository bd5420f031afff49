"""In which order the rules of a contract are asked: stage after stage, and within one as they are written."""

from __future__ import annotations

from enum import IntEnum


class Stage(IntEnum):
    """The order rules are checked in, for every operator."""

    NULL = 0
    PRODUCT = 1
    COUNT = 2  # attributes that lengths depend on, mask length
    LIST = 3  # list lengths and null elements
    NEEDED = 4  # nulls that depend on a mask or flag
    DTYPE = 5
    SAME_DTYPE = 6
    RANK = 7
    FORMAT = 8
    ATTRIBUTE = 9
    SHAPE = 10
    LIMIT = 11
    VIEW = 12  # inside the storage, no element twice
    VALUE = 13  # what only the data can say: checked when the work runs
