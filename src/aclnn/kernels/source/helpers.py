"""What kernels call inside: functions that Python never calls."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, register_jitable

from aclnn.kernels.native.linked import options

inner = register_jitable(**options())
inlined = register_jitable(**options(), forceinline=True)
"""The same, as part of whoever calls it: where a call would cost more than it does."""


@intrinsic
def seldom(context: Any) -> Any:
    """Says that the function this stands in is hardly ever called: it is no part of whoever calls it, which then need
    not keep registers for it."""

    def code(ctx: Any, b: Any, sig: Any, args: Any) -> Any:
        b.function.attributes.add("cold")
        return ctx.get_dummy_value()

    return types.void(), code
