"""What a kernel is, and which ones serve an operator: fastest first."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from aclnn.contract.call import Call

Run = Callable[..., None]
"""run(workspace, *tensors): the tensors in contract order, lists as lists of arrays, None where one is absent or takes
no part. Writes every output completely, through whatever strides it has. It may have a method bound(workspace,
*tensors) that gives the same as a function without arguments, and as `function` the same as one that is called sooner
and keeps what it needs."""


@dataclass(frozen=True)
class Refusal:
    """Why a kernel does not take a call."""

    reason: str


@dataclass(frozen=True)
class Prepared:
    """A planned call. `instantiate` gives each executor a run of its own; scratch lives in the caller's workspace."""

    instantiate: Callable[[], Run]
    workspace_size: int = 0
    is_launches: bool = False  # a run does nothing but launch native code: it looks at no element of a tensor


class Kernel(NamedTuple):
    """One way to compute an operator."""

    name: str
    engine: str  # fast or numpy
    plan: Callable[[Call, int], Prepared | Refusal]  # (call, threads)
    too_small: Callable[[Call], str | None] = lambda call: None
    """Why a call is not worth this kernel's start-up, if it is not. Asked by engine auto only."""
    gives_way: Callable[[Call], str | None] = lambda call: None
    """Why the other fast kernels are asked before it, if they are."""


_KERNELS: dict[str, list[Kernel]] = {}

forgetters: list[Callable[[], None]] = []
"""They give back what kernels keep from one plan to the next; `aclnn.cache_clear` calls them."""


def kernel(
    op_name: str, name: str, engine: str, **more: Callable[[Call], str | None]
) -> Callable[[Callable[[Call, int], Any]], Callable[[Call, int], Any]]:
    """Registers a planning function as a kernel of an operator; the first registered is asked first."""

    def register(plan: Callable[[Call, int], Any]) -> Callable[[Call, int], Any]:
        _KERNELS.setdefault(op_name, []).append(Kernel(name, engine, plan, **more))
        return plan

    return register


def numpy_kernel(op_name: str) -> Callable[[Callable[[Call], Run]], Callable[[Call], Run]]:
    """Registers a function that turns a call into its run: the portable kernel that takes every valid call."""

    def register(make_run: Callable[[Call], Run]) -> Callable[[Call], Run]:
        def plan(call: Call, threads: int) -> Prepared:
            run = make_run(call)
            return Prepared(lambda: _quiet(run))

        kernel(op_name, "numpy", "numpy")(plan)
        return lambda call: _quiet(make_run(call))

    return register


def _quiet(run: Run) -> Run:
    """The run without numpy's warnings: NaN and Inf pass.

    numpy keeps what to do about them in the context. To enter a copy of one costs 0.3 µs, np.errstate costs 1.1; a
    context itself has one thread inside at most, and a fork may leave that thread inside for good.
    """
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":  # it keeps that in the thread

        def quiet(*given: Any) -> None:
            with np.errstate(all="ignore"):
                run(*given)

        return quiet
    context = Context()
    context.run(np.seterr, all="ignore")
    return lambda *given: context.copy().run(run, *given)


def kernels_of(op_name: str, family: str) -> tuple[Kernel, ...]:
    """The kernels of an operator, the fast ones first; importing its family's modules registers them."""
    for module in ("fast", "fast_forward", "numpy"):
        if find_spec(f"aclnn.kernels.{family}.{module}") is not None:
            import_module(f"aclnn.kernels.{family}.{module}")
    return tuple(sorted(_KERNELS.get(op_name, ()), key=lambda k: k.engine != "fast"))
