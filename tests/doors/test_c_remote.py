"""The engine in a process of its own: what it answers, without a program."""

from __future__ import annotations

import pytest

from aclnn import ops
from aclnn.base.dtype import FLOAT32
from aclnn.base.tensor import dense
from aclnn.capi import remote
from aclnn.contract.call import Call
from aclnn.runtime.plan import make_plan

FAR = -(1 << 63)


@pytest.mark.parametrize(
    ("shape", "strides"), [((0, 5), (FAR, 1)), ((0, 5), (1, FAR)), ((5, 0), (1, FAR)), ((1, 5), (FAR, 1))], ids=str
)
def test_a_stride_that_leads_nowhere_fits_a_word(shape: tuple[int, int], strides: tuple[int, int]) -> None:
    """In bytes it might not: a program whose engine is a process of its own lost that process by it."""
    case = ops.case_maker(ops.find("aclnnElu"))(shape=shape)
    far = {name: dense(FLOAT32, shape)._replace(strides=strides) for name in ("self", "out")}
    plan = make_plan(case.op, Call({**case.values, **far}, case.device), "auto", 1)
    assert len(remote._packed([0, plan.workspace_size, *remote._layout(plan)])) % 8 == 0
