"""Executors through C, for every operator: repeated runs, other memory in between, errors that only data can show."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case, fill
from aclnn.contract.model import Arg, Op
from tests.doors.c_door import CCall, library
from tests.doors.toolchain import needs_compiler
from tests.harness import bits, call

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore::UserWarning")]


def whole_case(op: Op) -> Case:
    """A case whose tensors are all there and not empty."""
    for case in ops.cases(op):
        specs = [s for a in op.tensors for s in case.call.specs(a.name)]
        if all(case.values[a.name] is not None for a in op.tensors if not a.optional) and all(s.size for s in specs):
            return case
    raise AssertionError(f"{op} has no such case")


def owner(tensor: aclnn.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.owner.ctypes.data)


def exchange(made: CCall, arg: Arg, index: int, handle: Any, value: Any, which: str) -> None:
    """Gives one argument the memory of another filling of its case."""
    position, executor = ctypes.c_size_t(index), made.executor
    if arg.kind == "tensor":
        code = getattr(made.lib, f"aclSet{which}TensorAddr")(executor, position, handle, owner(value))
        assert code == 0, made.message()
        return
    for i, one in enumerate(value):
        place = ctypes.c_size_t(i)
        code = getattr(made.lib, f"aclSetDynamic{which}TensorAddr")(executor, position, place, handle, owner(one))
        assert code == 0, made.message()


@pytest.mark.parametrize("by_role", [False, True])
@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_runs_again_and_on_other_memory(op: Op, by_role: bool) -> None:
    case = whole_case(op)
    first, second = fill(case, 1), fill(case, 2)
    expected = [fill(case, seed) for seed in (1, 2)]
    for filled in expected:
        call(case, filled)
    made = CCall(case, first)
    lib = made.lib
    assert made.plan() == 0, made.message()
    assert lib.aclSetAclOpExecutorRepeatable(made.executor) == 0
    for _ in range(1 if set(op.inputs) & set(op.outputs) else 3):  # what is written over is another input
        assert made.run() == 0, made.message()
        assert lib.aclrtSynchronizeStream(None) == 0
    assert bits(case, first) == bits(case, expected[0])
    handles = {a.name: h for a, h in zip(op.args, made.arguments, strict=True)}
    groups = [("Input", op.inputs), ("Output", op.outputs)] if by_role else [("", op.args)]
    for which, args in groups:
        tensors = [a for a in args if a.is_tensor]
        for index, arg in enumerate(tensors):
            if case.values[arg.name] is not None:
                exchange(made, arg, index, handles[arg.name], second[arg.name], which)
    assert made.run() == 0, made.message()
    assert lib.aclrtSynchronizeStream(None) == 0
    assert bits(case, second) == bits(case, expected[1])
    assert bits(case, first) == bits(case, expected[0])
    made.destroy()


def with_bad_batch_sizes() -> list[Any]:
    """Calls whose batchSizes grow on the way, which only the data can say."""
    found = []
    for op in ops.all_ops():
        for arg in op.tensors:
            if arg.name.startswith("batchSizes"):
                case = next(c for c in ops.cases(op) if (s := c.values[arg.name]) is not None and s.size > 1)
                found.append(pytest.param(case, arg.name, id=op.name))
    return found


def spoil(filled: dict[str, Any], name: str) -> None:
    view = filled[name].view
    view[...] = np.arange(view.size)


@pytest.mark.parametrize(("case", "name"), with_bad_batch_sizes())
def test_values_are_refused_when_the_stream_is_synchronized(case: Case, name: str) -> None:
    filled = fill(case)
    spoil(filled, name)
    with pytest.raises(aclnn.AclnnError) as refused:
        call(case, filled)
    made = CCall(case, filled)
    before = bits(case, filled)
    assert (made.plan(), made.run()) == (0, 0)
    told: list[Any] = []

    def synchronize() -> None:  # whoever synchronizes is told, once
        told.append(int(library().aclrtSynchronizeStream(None)))
        told.append(made.message())

    thread = threading.Thread(target=synchronize)
    thread.start()
    thread.join()
    assert told == [refused.value.code, refused.value.message]
    assert library().aclrtSynchronizeStream(None) == 0
    assert bits(case, filled) == before
    made.destroy()


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_null_data_is_taken_by_phase_one_and_refused_by_phase_two(op: Op) -> None:
    case = whole_case(op)
    filled = fill(case)
    made = CCall(case, filled)
    arg = next(a for a in op.tensors if a.kind == "tensor")
    handle = made.arguments[op.args.index(arg)]
    assert made.lib.aclSetRawTensorAddr(handle, None) == 0
    assert made.plan() == 0, made.message()
    assert made.run() == 161001
    text = f"{op.name}: {arg.name} has a null address; a tensor that is not empty must have memory."
    assert made.message() == text
    made.destroy()


@pytest.mark.parametrize("op", [o for o in ops.all_ops() if o.name != "aclnnInplaceElu"], ids=str)
def test_an_output_on_an_input_is_refused_as_in_python(op: Op) -> None:
    """The output begins one element into the input, where no operator allows it."""
    case = whole_case(op)
    filled = fill(case)
    source = next(filled[a.name] for a in op.inputs if a.kind == "tensor")
    target = next(a for a in op.outputs if a.kind == "tensor")
    made = CCall(case, filled)
    handle = made.arguments[op.args.index(target)]
    size = source.owner.itemsize
    assert made.lib.aclSetRawTensorAddr(handle, ctypes.c_void_p(source.owner.ctypes.data + size)) == 0
    assert made.plan() == 0, made.message()
    assert made.run() == 161002
    assert made.message().startswith(f"{op.name}: {target.name} overlaps ")
    made.destroy()


def test_an_address_between_elements_is_refused() -> None:
    case = whole_case(ops.find("aclnnEluBackward"))
    filled = fill(case)
    made = CCall(case, filled)
    address = filled["gradOutput"].owner.ctypes.data + 1
    assert made.lib.aclSetRawTensorAddr(made.arguments[0], ctypes.c_void_p(address)) == 0
    assert (made.plan(), made.run()) == (0, 161002)
    assert "it must be a multiple of" in made.message()
    made.destroy()
