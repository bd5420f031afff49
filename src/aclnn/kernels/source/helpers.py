"""What kernels call inside: functions that Python never calls, and so compile in nine tenths of the time."""

from __future__ import annotations

from numba.extending import register_jitable

inner = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
"""The same, as part of whoever calls it: where a call would cost more than it does."""
