"""The engine behind the C++ library: plans signatures, checks addresses, runs.

Two flat arrays of 64-bit integers come across the border. The signature is all that phase 1 depends on (signature.py
reads it); its bytes are looked up as they are, and only one that was never seen is decoded. The addresses are the
workspace, its size, and one address per tensor in contract order, lists spread out.

What is planned is shared: the library keeps it under its signature, asks for a run of its own where an executor is
repeatable, and calls native code by itself where the call is nothing else (native.py).

Every function answers COMPUTED (`plan`, `own`: a tuple that begins with it) or (code, sentence). Nothing is raised.
"""

from __future__ import annotations

import atexit
import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, Status
from aclnn.base.tensor import Placement, memory_at
from aclnn.capi.native import address_counts, native_call, run_by
from aclnn.capi.signature import contracts_id, read_call
from aclnn.kernels.registry import forgetters
from aclnn.runtime import settings
from aclnn.runtime.call_cache import CachedCall, call_cache
from aclnn.runtime.executor import check_values
from aclnn.runtime.memory import check_workspace
from aclnn.runtime.overlap import check_addresses
from aclnn.runtime.plan import Plan, guarded, make_plan
from aclnn.runtime.refusals import no_memory, parameter
from aclnn.runtime.verbose import VERBOSE, report

COMPUTED = 0x61636C6E6E
"""What proves to the library that this engine answered."""

Refusal = tuple[int, str]
OTHER_VERSION: Refusal = (
    int(Status.ACLNN_ERR_INNER),
    "the library was built from another version of aclnn-cpu than the installed one; build it again.",
)
Answer = TypeVar("Answer")
Given = TypeVar("Given")

MOST_BOUND = 16
"""Sets of addresses whose views a call remembers: programs that use the same memory again come with the same few."""

_hooks: list[Any] = []


def start(contracts: str, close_engine: int, forget: int = 0) -> tuple[int, int] | Refusal:
    """Joins library and engine; says where to read whether a context was ever entered. `close_engine` is the address
    of the function to call before Python ends, `forget` of the one that lets go of all that is planned."""
    if contracts != contracts_id():
        return OTHER_VERSION
    hooks = [ctypes.CFUNCTYPE(None)(address) for address in (close_engine, forget)]  # they let go of Python's lock
    _hooks.extend(hooks)
    atexit.register(hooks[0])
    forgetters.append(hooks[1])
    return COMPUTED, ctypes.addressof(settings.ever_entered)


def plan(signature: bytes) -> tuple[int, BoundPlan, int, bool, int, int] | Refusal:
    """Phase 1: the planned call, its workspace, whether it is new, the address of its native call or 0, and by whom
    it may be run."""
    return _answered(_plan, signature)


def _plan(signature: bytes) -> tuple[int, BoundPlan, int, bool, int, int]:
    began = time.perf_counter()
    product, engine, threads = settings.current_product(), settings.current_engine(), settings.current_threads()
    is_new = False

    def make() -> Plan:
        nonlocal is_new
        is_new = True
        return make_plan(*read_call(signature, product), engine, threads)

    cached = call_cache.get((product, engine, threads, signature), make)
    planned = BoundPlan(cached, (time.perf_counter() - began) * 1e6)
    native = planned.native.address if planned.native is not None else 0
    by = run_by(cached.plan, planned.native)
    return COMPUTED, planned, cached.plan.workspace_size, is_new, native, int(by)


def own(planned: BoundPlan) -> tuple[int, OwnRun] | Refusal:
    """A run for an executor that will run again: nobody else's calls take it away."""
    return _answered(lambda call: (COMPUTED, OwnRun(call)), planned)


def check(planned: BoundPlan, addresses: bytes) -> int | Refusal:
    """Whether the work may run on these addresses."""
    return _answered(planned.check, addresses)


def run(run: BoundPlan | OwnRun, addresses: bytes) -> int | Refusal:
    """Phase 2, on whatever thread has come to run it."""
    return _answered(run.run, addresses)


def _answered(work: Callable[[Given], Answer], given: Given) -> Answer | Refusal:
    try:
        return work(given)
    except AclnnError as error:
        return error.code, error.message
    except BaseException as error:  # nothing may pass the border as an exception
        return int(Status.ACLNN_ERR_INNER), f"the engine failed with {type(error).__name__}: {error}."


class BoundPlan:
    """A plan that runs on addresses."""

    __slots__ = ("_bound", "_cached", "_plan_us", "native", "plan")

    def __init__(self, cached: CachedCall, plan_us: float):
        self._cached, self.plan = cached, cached.plan
        self.native = native_call(self.plan, self._bind)
        self._plan_us = plan_us
        self._bound: dict[bytes, list[Any]] = {}

    def check(self, addresses: bytes) -> int:
        start, size = memoryview(addresses).cast("Q")[:2]
        check_workspace(self.plan.op, start, size, self.plan.workspace_size)
        scratch, *views = self._bind(addresses)
        check_addresses(self.plan.op, views, scratch)
        return COMPUTED

    def run(self, addresses: bytes) -> int:
        return self.run_with(self._cached.run, addresses)

    def run_with(self, run: Callable[..., None], addresses: bytes) -> int:
        given = self._bound.get(addresses)
        if given is None:
            given = self._bind(addresses)
            if len(self._bound) >= MOST_BOUND:
                self._bound = {}  # another thread may be reading the old one
            self._bound[addresses] = given
        began = time.perf_counter()
        if self.plan.value_rules:
            check_values(self.plan, given[1:])
        run(*given)
        if VERBOSE:
            report(self.plan, self._plan_us, (time.perf_counter() - began) * 1e6)
        return COMPUTED

    def _bind(self, addresses: bytes) -> list[Any]:
        """The scratch and every view, on that memory."""
        workspace, size, *rest = memoryview(addresses).cast("q")
        given: list[Any] = [memory_at(workspace, size) if self.plan.workspace_size else None]
        position = 0
        every = zip(self.plan.op.tensors, self.plan.placements, address_counts(self.plan), strict=True)
        for arg, placements, count in every:
            where = rest[position : position + count]
            position += count
            if placements is None:
                given.append(None)
            elif arg.kind == "tensor":
                given.append(self._view(arg.name, placements[0], where[0]))
            else:
                pairs = enumerate(zip(placements, where, strict=True))
                given.append([self._view(f"{arg.name}[{i}]", p, address) for i, (p, address) in pairs])
        return given

    def _view(self, name: str, placement: Placement, address: int) -> Array:
        if 0 not in placement.shape:
            if not address:
                raise no_memory(self.plan.op, name)
            if address % placement.dtype.alignment:
                unit = placement.dtype.alignment
                text = f"{name} has address {address:#x}; it must be a multiple of {unit}, the size of its elements"
                raise parameter(self.plan.op, text, name)
        try:
            return placement.at(address)
        except (ValueError, OverflowError):  # possible when the program did not say how large the storage is
            text = f"{name} has a view that no memory can hold (address {address:#x}, offset and strides as given)"
            raise parameter(self.plan.op, text, name) from None


class OwnRun:
    """The same with a run that is kept for it."""

    __slots__ = ("_planned", "_run")

    def __init__(self, planned: BoundPlan):
        self._planned = planned
        self._run = partial(guarded, planned.plan, planned.plan.instantiate())

    def run(self, addresses: bytes) -> int:
        return self._planned.run_with(self._run, addresses)
