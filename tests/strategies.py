"""What hypothesis draws: the same case with its tensors laid out otherwise."""

from __future__ import annotations

from hypothesis import strategies as st

from aclnn.contract.cases import Case
from tests.every import draw


def strided(case: Case) -> st.SearchStrategy[Case]:
    """The case with its tensors permuted, reversed, spread and offset; those that are only read may be broadcast."""
    return st.randoms(use_true_random=False).map(lambda rng: draw.strided(case, rng, broadcast=True))
