"""aclnn on any CPU: the aclnn gradient operators, exact to their contract.

>>> import numpy as np
>>> y = np.array([-2, -1, 0, 1], np.float32)
>>> elu_backward(y, 1.0, 1.0, 1.0, True, y)
array([ 2., -0.,  0.,  1.], dtype=float32)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aclnn._operators import *  # noqa: F403
from aclnn._operators import __all__ as _operator_names
from aclnn._version import __version__
from aclnn.base.dtype import BFLOAT16 as _BFLOAT16
from aclnn.base.status import AclnnError
from aclnn.base.tensor import Tensor
from aclnn.runtime.call_cache import call_cache as _call_cache
from aclnn.runtime.call_cache import clear as cache_clear
from aclnn.runtime.executor import Executor
from aclnn.runtime.settings import engine, product, threads
from aclnn.runtime.stream import Stream

if TYPE_CHECKING:
    from aclnn.golden.compare import compare

bfloat16 = _BFLOAT16.numpy
cache_info = _call_cache.info

__all__ = [
    *_operator_names,
    "AclnnError",
    "Executor",
    "Stream",
    "Tensor",
    "__version__",
    "bfloat16",
    "cache_clear",
    "cache_info",
    "compare",
    "engine",
    "product",
    "threads",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """What is loaded only when it is used."""
    if name == "compare":
        return import_module("aclnn.golden.compare").compare
    raise AttributeError(f"module 'aclnn' has no attribute {name!r}")
