"""The `acl` module of an installed prefix: the runtime and the operators of aclnn-cpu for Python programs, by ctypes.

It needs nothing but the standard library, so any Python may import it; `acl.util` uses numpy where arrays are meant.
A function with a value returns (value, ret), one without returns ret; `acl.get_recent_err_msg()` has the sentence.
"""

from __future__ import annotations

import ctypes
from typing import Any

from . import nn, rt, util
from ._constants import *  # noqa: F403
from ._library import NotSupportedError, absent_module, call, code

__all__ = [
    "NotSupportedError",
    "finalize",
    "get_recent_err_msg",
    "get_soc_name",
    "get_version",
    "init",
    "nn",
    "rt",
    "util",
]

mdl = absent_module("acl.mdl", "offline models are not part of this library")
op = absent_module("acl.op", "operators are called through acl.nn here, by their own two functions")
blas = absent_module("acl.blas", "matrix products are not part of this library")
media = absent_module("acl.media", "pictures and video are not part of this library")
himpi = absent_module("acl.himpi", "pictures and video are not part of this library")
tdt = absent_module("acl.tdt", "queues to a device are not part of this library")
prof = absent_module("acl.prof", "there is no profiler; ACLNN_VERBOSE=1 prints one line per run")


def init(config_path: str | None = None) -> int:
    return code("aclInit", None if config_path is None else str(config_path).encode())


def finalize() -> int:
    return code("aclFinalize")


def get_version() -> tuple[str, int]:
    """The version of this library."""
    *numbers, ret = rt.get_version()
    return ".".join(map(str, numbers)), ret


def get_soc_name() -> str:
    return str(call("aclrtGetSocName", result=ctypes.c_char_p).decode())


def get_recent_err_msg() -> str:
    """The sentences of this thread's failed calls, newest first; reading clears them."""
    return str(call("aclGetRecentErrMsg", result=ctypes.c_char_p).decode("utf-8", "replace"))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(f"acl.{name} is not part of this library; acl.rt, acl.util and acl.nn are")
