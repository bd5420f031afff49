"""Helpers of kernels are linked, and never run.

numba optimises every function that it compiles with all that this calls, and makes machine code of it for Python to
call: more than a third of the time that a kernel takes. Ours is optimised once, the kernel with all that it calls, and
becomes machine code after that; see jit.py. And numba looks in every function for what no kernel has.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aclnn.base.run_once import once

_NAMES = ("_library_class", "set_env", "_data_layout", "_module_pass_manager")  # private ones of numba's
_UNNEEDED = {"InlineClosureLikes", "InlineOverloads", "NopythonRewrites"}  # passes for closures, overloads and arrays


@once
def options() -> dict[str, Any]:
    """How numba compiles a kernel, and all that it calls: Python calls none of it, and nothing counts references."""
    from numba.core.compiler import CompilerBase, DefaultPassBuilder

    class Compiler(CompilerBase):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(kind, why) for kind, why in passes.passes if kind.__name__ not in _UNNEEDED]
            passes.finalize()
            return [passes]

    return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "pipeline_class": Compiler}


@once
def _library() -> Any:
    """A library of numba's without machine code, optimised when it is read; None where numba is built otherwise."""
    try:
        from numba.core.codegen import JITCodeLibrary
    except ImportError:
        return None

    class Linked(JITCodeLibrary):  # type: ignore[misc]
        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_llvm_str(self) -> str:
            made = self._codegen._module_pass_manager()  # with a builder, or before numba 0.62 without
            manager, *builder = made if isinstance(made, tuple) else (made,)
            manager.run(self._final_module, *builder)
            return str(super().get_llvm_str())

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    return Linked if hasattr(JITCodeLibrary, "_finalized") else None


@contextmanager
def linked_only() -> Iterator[None]:
    """What numba compiles in here has no machine code, and is optimised when it is read. Other threads that compile
    wait, as they do for each other; a numba that is built otherwise does as it always does."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    codegen, library = cpu_target.target_context.codegen(), _library()
    if library is None or not all(hasattr(codegen, name) for name in _NAMES):
        yield
        return
    with global_compiler_lock, _no_collection():
        codegen._library_class, codegen.set_env = library, lambda name, environment: None
        try:
            yield
        finally:
            del codegen._library_class, codegen.set_env


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage is collected later: of the million objects that a compiler makes nearly all are still in use, and looking
    at them again and again takes 5 % of its time."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
