"""The engine behind the C++ library: plans signatures, checks addresses, runs.

Two flat arrays of 64-bit integers come across the border. The signature is all that phase 1 depends on (signature.py
reads it); its bytes are looked up as they are, and only one that was never seen is decoded. The addresses are the
workspace, its size, and one address per tensor in contract order, lists spread out.

Every function answers COMPUTED (`plan`: a tuple that begins with it) or (code, sentence). Nothing is raised.
"""

from __future__ import annotations

import atexit
import ctypes
import time
from collections.abc import Callable
from typing import Any, TypeVar

from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, Status
from aclnn.base.tensor import Placement, memory_at
from aclnn.capi.signature import contracts_id, read_call
from aclnn.runtime import settings
from aclnn.runtime.executor import VERBOSE, check_addresses, check_workspace, execute, no_memory, parameter, report
from aclnn.runtime.plan import Plan, make_plan, plan_cache

COMPUTED = 0x61636C6E6E
"""What proves to the library that this engine answered."""

Refusal = tuple[int, str]
Answer = TypeVar("Answer")

_hooks: list[Any] = []


def start(contracts: str, close_doors: int) -> int | Refusal:
    """Joins library and engine. `close_doors` is the address of the function to call before Python ends."""
    if contracts != contracts_id():
        text = "the library was built from another version of aclnn-cpu than the installed one; build it again."
        return int(Status.ACLNN_ERR_INNER), text
    hook = ctypes.CFUNCTYPE(None)(close_doors)  # lets go of the interpreter lock while it drains the workers
    _hooks.append(hook)
    atexit.register(hook)
    return COMPUTED


def plan(signature: bytes) -> tuple[int, Execution, int, bool] | Refusal:
    """Phase 1: an execution of the planned call, its workspace, and whether the plan is new."""
    return _answered(_plan, signature)


def _plan(signature: bytes) -> tuple[int, Execution, int, bool]:
    began = time.perf_counter()
    product, engine, threads = settings.current_product(), settings.current_engine(), settings.current_threads()
    is_new = False

    def make() -> Plan:
        nonlocal is_new
        is_new = True
        return make_plan(*read_call(signature, product), engine, threads)

    made = plan_cache.get((product, engine, threads, signature), make)
    execution = Execution(made, (time.perf_counter() - began) * 1e6)
    return COMPUTED, execution, made.workspace_size, is_new


def check(execution: Execution, addresses: bytes) -> int | Refusal:
    """Whether the work may run on these addresses."""
    return _answered(execution.check, addresses)


def run(execution: Execution, addresses: bytes) -> int | Refusal:
    """Phase 2, on the worker of a stream."""
    return _answered(execution.run, addresses)


def _answered(work: Callable[[bytes], Answer], words: bytes) -> Answer | Refusal:
    try:
        return work(words)
    except AclnnError as error:
        return error.code, error.message
    except BaseException as error:  # nothing may pass the border as an exception
        return int(Status.ACLNN_ERR_INNER), f"the engine failed with {type(error).__name__}: {error}."


class Execution:
    """A plan with a run of its own, bound to the addresses it was last given."""

    __slots__ = ("_addresses", "_plan", "_plan_us", "_run", "_scratch", "_views")

    def __init__(self, plan: Plan, plan_us: float):
        self._plan = plan
        self._plan_us = plan_us
        self._run = plan.prepared.instantiate()
        self._addresses = b""
        self._views: list[Any] = []
        self._scratch: Array | None = None

    def check(self, addresses: bytes) -> int:
        start, size = memoryview(addresses).cast("Q")[:2]
        check_workspace(self._plan.op, start, size, self._plan.workspace_size)
        scratch, views = self._bind(addresses)
        check_addresses(self._plan.op, views, scratch)
        return COMPUTED

    def run(self, addresses: bytes) -> int:
        if addresses != self._addresses:
            self._scratch, self._views = self._bind(addresses)
            self._addresses = addresses
        began = time.perf_counter()
        execute(self._plan, self._run, self._scratch, self._views)
        if VERBOSE:
            report(self._plan, self._plan_us, (time.perf_counter() - began) * 1e6)
        return COMPUTED

    def _bind(self, addresses: bytes) -> tuple[Array | None, list[Any]]:
        workspace, size, *rest = memoryview(addresses).cast("q")
        scratch = memory_at(workspace, size) if self._plan.workspace_size else None
        views: list[Any] = []
        position = 0
        for arg, placements in zip(self._plan.op.tensors, self._plan.placements, strict=True):
            count = 1 if arg.kind == "tensor" else len(self._plan.call[arg.name] or ())
            given = rest[position : position + count]
            position += count
            if placements is None:
                views.append(None)
            elif arg.kind == "tensor":
                views.append(self._view(arg.name, placements[0], given[0]))
            else:
                pairs = enumerate(zip(placements, given, strict=True))
                views.append([self._view(f"{arg.name}[{i}]", p, address) for i, (p, address) in pairs])
        return scratch, views

    def _view(self, name: str, placement: Placement, address: int) -> Array:
        if 0 not in placement.shape:
            if not address:
                raise no_memory(self._plan.op, name)
            if address % placement.dtype.alignment:
                unit = placement.dtype.alignment
                text = f"{name} has address {address:#x}; it must be a multiple of {unit}, the size of its elements"
                raise parameter(self._plan.op, text, name)
        try:
            return placement.at(address)
        except (ValueError, OverflowError):  # possible when the program did not say how large the storage is
            text = f"{name} has a view that no memory can hold (address {address:#x}, offset and strides as given)"
            raise parameter(self._plan.op, text, name) from None
