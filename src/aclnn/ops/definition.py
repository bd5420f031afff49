"""What an operator consists of, in one record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from aclnn.contract.cases import Case
from aclnn.contract.model import Op


class Definition(NamedTuple):
    """The parts of one operator. Reference and terms take the arguments by their Python names."""

    op: Op
    reference: Callable[..., Any]  # the outputs in float64
    terms: Callable[..., Any]  # the sums behind each output: what rounding may do to it
    case: Callable[..., Case]  # a valid case of the sizes asked for
    cases: Callable[[], Iterator[Case]]  # those that together reach every attribute and every corner
