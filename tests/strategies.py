"""What hypothesis draws: the same case with its tensors laid out otherwise."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from aclnn.base.tensor import TensorSpec
from aclnn.contract.cases import Case


@st.composite
def strided(draw: st.DrawFn, case: Case) -> Case:
    """The case with its tensors permuted, reversed, spread and offset; those that are only read may be broadcast."""
    changed: dict[str, Any] = {}
    for arg in case.op.tensors:
        value = case.values[arg.name]
        if isinstance(value, TensorSpec):
            changed[arg.name] = draw(_laid_out(value, arg.out))
        elif value is not None:
            changed[arg.name] = tuple(draw(_laid_out(spec, arg.out)) for spec in value)
    return case.but("strided", **changed)


@st.composite
def _laid_out(draw: st.DrawFn, spec: TensorSpec, is_output: bool) -> TensorSpec:
    strides, step = [0] * spec.rank, draw(st.integers(1, 2))
    for axis in draw(st.permutations(range(spec.rank))):
        strides[axis] = step
        step *= max(spec.shape[axis], 1) + draw(st.integers(0, 1))
    signs = [draw(st.sampled_from((1, -1) if is_output else (1, -1, 0))) for _ in strides]
    strides = [s * k for s, k in zip(strides, signs, strict=True)]
    low = -sum((n - 1) * s for n, s in zip(spec.shape, strides, strict=True) if s < 0 and n)
    return spec._replace(strides=tuple(strides), offset=low + draw(st.integers(0, 3)), storage=None)
