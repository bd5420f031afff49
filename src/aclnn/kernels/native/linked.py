"""Helpers of kernels are linked, and never run.

numba makes machine code of every function that it compiles, for Python to call: of the time that a kernel takes, a
fifth. Ours is made once, of the kernel with all that it calls; see jit.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aclnn.base.once import once


@once
def _library() -> Any:
    """A library of numba's without machine code."""
    from numba.core.codegen import JITCodeLibrary

    class Linked(JITCodeLibrary):  # type: ignore[misc]
        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    return Linked


@contextmanager
def linked_only() -> Iterator[None]:
    """What numba compiles in here has no machine code. Other threads that compile wait, as they do for each other; a
    numba that is built otherwise does as it always does."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    codegen, library = cpu_target.target_context.codegen(), _library()
    known = ("_library_class", "set_env", "_add_module")
    if not all(hasattr(codegen, name) for name in known) or not hasattr(library, "_finalized"):
        yield
        return
    with global_compiler_lock:
        codegen._library_class, codegen.set_env = library, lambda name, environment: None
        try:
            yield
        finally:
            del codegen._library_class, codegen.set_env
