"""Helpers of kernels are linked, and never run.

numba makes machine code of every function that it compiles, for Python to call: of the time that a kernel takes, a
fifth. Ours is made once, of the kernel with all that it calls; see jit.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aclnn.base.run_once import once


@once
def _library() -> Any:
    """A library of numba's without machine code; None where numba is built otherwise."""
    try:
        from numba.core.codegen import JITCodeLibrary
    except ImportError:
        return None

    class Linked(JITCodeLibrary):  # type: ignore[misc]
        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    return Linked if hasattr(JITCodeLibrary, "_finalized") else None


@contextmanager
def linked_only() -> Iterator[None]:
    """What numba compiles in here has no machine code. Other threads that compile wait, as they do for each other; a
    numba that is built otherwise does as it always does."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    codegen, library = cpu_target.target_context.codegen(), _library()
    if library is None or not all(hasattr(codegen, name) for name in ("_library_class", "set_env")):
        yield
        return
    with global_compiler_lock:
        codegen._library_class, codegen.set_env = library, lambda name, environment: None
        try:
            yield
        finally:
            del codegen._library_class, codegen.set_env
