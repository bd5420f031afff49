"""What the operator tests share: calling an operator on a case, through the public Python door."""

from __future__ import annotations

from typing import Any

import numpy as np

import aclnn
from aclnn.base.geometry import Array, contiguous_strides
from aclnn.contract.cases import Case, fill, kept, views
from aclnn.golden.judge.sound import Judged, judge
from aclnn.runtime import scratch

FENCE, MARK = 2**16, 77


def call(case: Case, filled: dict[str, Any], **settings: Any) -> Any:
    """Calls the case's operator by its public name, with the case's own outputs as `out`, on scratch between fences."""
    operator, engine = getattr(aclnn, case.op.python), settings.get("engine")
    given = {a.name: filled[a.name] for a in case.op.inputs}
    out = tuple(filled[a.name] for a in case.op.fresh) or None
    plan = operator._plan(given, out, case.device, engine, repeatable=False)
    memory = np.full(plan.workspace_size + 2 * FENCE, MARK, np.uint8)
    scratch.clear()
    scratch.give_back(memory[FENCE:-FENCE])  # what the next functional call takes
    try:
        result = operator._call(given, out, case.device, engine)
    finally:
        scratch.clear()
    assert (memory[:FENCE] == MARK).all(), f"{plan.kernel} wrote before its workspace"
    assert (memory[-FENCE:] == MARK).all(), f"{plan.kernel} wrote behind its workspace"
    return result


def run_and_judge(case: Case, engine: str, seed: int = 0) -> tuple[dict[str, Any], list[Judged]]:
    """Fills the case, runs it, checks that nothing outside the output views was touched, and judges the outputs."""
    filled = fill(case, seed)
    given = kept(views(filled, case.op), case.op)
    before = _outside(case, filled)
    call(case, filled, engine=engine)
    for name, (then, now) in {k: (v, _outside(case, filled)[k]) for k, v in before.items()}.items():
        assert then == now, f"{name} was written outside its view"
    return filled, judge(case.op, case.call, views(filled, case.op), given)


def assert_sound(case: Case, engine: str, seed: int = 0) -> dict[str, Any]:
    filled, judged = run_and_judge(case, engine, seed)
    for output in judged:
        assert output.sound, f"{case.op} {case.note}: {output.name} is {output.worst:.3g} times the allowed error off"
    return filled


def tensors(filled: dict[str, Any]) -> dict[str, aclnn.Tensor]:
    """Every tensor of a filled case by name, list elements as name[i]."""
    found: dict[str, aclnn.Tensor] = {}
    for name, value in filled.items():
        for i, one in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(one, aclnn.Tensor):
                found[f"{name}[{i}]" if isinstance(value, list) else name] = one
    return found


def _outside(case: Case, filled: dict[str, Any]) -> dict[str, bytes]:
    """The bytes that a call must leave alone: all of the inputs, and of the outputs what their views do not reach."""
    kept = {}
    for name, tensor in tensors(filled).items():
        arg = case.op.by_name[name.partition("[")[0]]
        storage = tensor.owner.copy()
        if arg.out and arg.takes_part(case.call):
            aclnn.Tensor.on(storage, tensor.spec).view[...] = 0
        kept[name] = storage.tobytes()
    return kept


def bits(case: Case, filled: dict[str, Any]) -> list[bytes]:
    """The outputs, bit by bit."""
    return [
        np.ascontiguousarray(t.view).tobytes()
        for n, t in tensors(filled).items()
        if case.op.by_name[n.partition("[")[0]].out
    ]


def moved(array: Array, elements: int) -> aclnn.Tensor:
    """The same values in memory that begins so many elements behind the beginning of a cache line."""
    storage = np.zeros(array.size + 64 + elements, array.dtype)
    start = (-storage.ctypes.data % 64) // array.itemsize + elements
    storage[start : start + array.size] = array.ravel()
    return aclnn.Tensor(storage, array.shape, offset=start)


def turned(case: Case, *names: str) -> Case:
    """The case with tensors whose first axis lies innermost: neighbours along the last are far apart."""
    changed = {}
    for name in names:
        specs = [s._replace(strides=contiguous_strides(s.shape[::-1])[::-1]) for s in case.call.specs(name)]
        changed[name] = tuple(specs) if case.op.by_name[name].kind == "tensor_list" else specs[0]
    return case.but("turned", **changed)
