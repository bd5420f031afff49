"""What a call is made under: product, engine, threads. A context beats the environment, an argument beats both."""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

from aclnn.base import device as devices
from aclnn.base.device import Device
from aclnn.base.status import invalid
from aclnn.base.tensor import kind_of

MOST_THREADS = max(256, os.cpu_count() or 1)  # libgomp ends the process if the operating system refuses a thread
ENGINES = ("auto", "fast", "numpy", "reference")


class Context(NamedTuple):
    """What contexts say; where they are silent the environment decides, once for the process."""

    product: Device | None = None
    engine: str | None = None
    threads: int | None = None


_SILENT = Context()
variable: ContextVar[Context] = ContextVar("aclnn", default=_SILENT)
context = variable.get
ever_entered = ctypes.c_int64(0)
"""1 once any context was entered; the C++ library reads it: as long as it is 0, plans depend on no context."""


def current_product(given: str | Device | None = None) -> Device:
    if given is not None:
        return devices.find(given)
    return context().product or _environment_product()


def current_engine(given: str | None = None) -> str:
    if given is not None:
        return _known_engine(given)
    return context().engine or _environment_engine()


def current_threads() -> int:
    return context().threads or _environment_threads()


@contextmanager
def product(name: str | Device) -> Iterator[Device]:
    """Checks every call inside the block against this product: `with aclnn.product("Atlas A3"): …`"""
    found = devices.find(name)
    with _inside(context()._replace(product=found)):
        yield found


@contextmanager
def engine(name: str) -> Iterator[str]:
    """Runs every call inside the block on this engine: auto, fast, numpy or reference."""
    with _inside(context()._replace(engine=_known_engine(name))):
        yield name


@contextmanager
def threads(count: int) -> Iterator[int]:
    """Plans every call inside the block for this many threads."""
    with _inside(context()._replace(threads=_positive(count, "threads"))):
        yield count


@contextmanager
def _inside(changed: Context) -> Iterator[None]:
    ever_entered.value = 1
    token = variable.set(changed)
    try:
        yield
    finally:
        variable.reset(token)


def _known_engine(name: str) -> str:
    if not isinstance(name, str) or name not in ENGINES:
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise invalid(f"there is no engine {shown}; choose one of {', '.join(ENGINES)}.", "engine")
    return name


def _positive(count: object, source: str) -> int:
    try:
        number = int(count) if isinstance(count, str) else operator.index(count)  # type: ignore[arg-type]
    except Exception:  # numbers of others may raise anything
        number = 0
    if not 1 <= number <= MOST_THREADS:
        shown = repr(count) if isinstance(count, (int, str)) else kind_of(count)
        text = f"{source} is {shown}; it must be a whole number of at least 1 and at most {MOST_THREADS}."
        raise invalid(text, "threads")
    return number


@cache
def _environment_product() -> Device:
    return devices.find(os.environ.get("ACLNN_PRODUCT") or devices.DEFAULT)


@cache
def _environment_engine() -> str:
    return _known_engine(os.environ.get("ACLNN_ENGINE") or "auto")


@cache
def _environment_threads() -> int:
    if os.environ.get("ACLNN_NUM_THREADS"):
        return _positive(os.environ["ACLNN_NUM_THREADS"], "ACLNN_NUM_THREADS")
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if wanted.isdigit() and int(wanted) > 0:
        return min(int(wanted), MOST_THREADS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
