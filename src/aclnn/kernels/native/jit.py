"""Nopython functions as native code: compiled by numba once, kept in a private checked folder, called by address.

A kernel is a module-level function `name(lo, hi, *arguments)` in aclnn.kernels.source that does the items lo … hi − 1
of some work. `load("elu.backward", "FFFfffi")` gives its entry. numba is only imported when the folder does not have
the code yet: a warm process needs llvmlite alone (0.1 s instead of 0.7 s), and reads machine code, never a pickle.
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.run_once import Once, once
from aclnn.base.status import reason
from aclnn.kernels.native import isa
from aclnn.kernels.native.code_cache import CodeCache, fingerprint
from aclnn.kernels.native.entry import ENTRY, FUNCTION, Entry, entry_code, symbols
from aclnn.kernels.native.linked import linked_only, options
from aclnn.kernels.native.memory import DATA

log = logging.getLogger("aclnn")

POINTER = {FLOAT32: "F", FLOAT16: "H", BFLOAT16: "B"}
"""The letter of a pointer to elements. float16 travels as int16 and bfloat16 as uint16; see source.elements."""

_NUMBA_TYPES = {"i": "int64", "f": "float32", "I": "int64", "F": "float32", "H": "int16", "B": "uint16", "P": "uint32"}
_LOADED: Once[str, Entry] = Once()
_ALIVE: list[Any] = []  # what owns the loaded code


def factors(terms: int) -> str:
    """The letter of a pointer to factors that have so many terms of a sum in an element: floats, or pairs."""
    return "P" if terms > 1 else "F"


class NoNativeCodeError(Exception):
    """Why there is no native code here."""


def letters(*dtypes: DType) -> str:
    return "".join(POINTER[d] for d in dtypes)


def load(name: str, types: str) -> Entry:
    """The entry of a kernel for arguments of these types, compiled now if need be. Raises NoNativeCodeError.

    Types are one letter each: i int64, f float32; I, F, H, B, P pointers to int64, float32, float16, bfloat16, and to
    pairs of bfloat16, see source.pairs.
    """
    key = f"{name}-{types}"
    return _LOADED.get(key, lambda: Entry(*_addresses(_object(name, types, key))))


def _arrays(types: str) -> int:
    """How many pointers to elements come first."""
    return len(types) - len(types.lstrip("".join(POINTER.values())))


def _object(name: str, types: str, key: str) -> bytes:
    """Machine code from the disk, or fresh."""
    cache = CodeCache(_fingerprint())
    code = cache.read(key)
    if code is None:
        code = _compile(name, types)
        cache.write(key, code)
    return code


def _compile(name: str, types: str) -> bytes:
    numba = _numba()
    if numba.config.DISABLE_JIT:
        raise NoNativeCodeError("numba is disabled (NUMBA_DISABLE_JIT)")
    module, _, function = name.rpartition(".")
    try:
        source = getattr(import_module(f"aclnn.kernels.source.{module}"), function)
        arguments = tuple(_numba_type(numba.types, letter) for letter in "ii" + types)
        with linked_only():
            compiled = numba.njit(numba.types.void(*arguments), error_model="numpy", **options())(source)
            text = compiled.inspect_llvm(arguments)
        return _machine_code(text, compiled.overloads[arguments].fndesc.llvm_func_name, types)
    except Exception as error:  # another numba may say no in any way; the next kernel serves
        log.warning("%s(%s) cannot be compiled: %s", name, types, error)
        raise NoNativeCodeError(f"numba cannot compile {name} ({type(error).__name__})") from error


def _machine_code(text: str, kernel: str, types: str) -> bytes:
    llvm = _llvm()
    whole = llvm.parse_assembly(text)
    whole.link_in(llvm.parse_assembly(entry_code(kernel, types, _arrays(types))))
    for symbol in (*whole.functions, *whole.global_variables):
        if not symbol.is_declaration and symbol.name not in (ENTRY, FUNCTION):
            symbol.linkage = "internal"  # numba's are common or weak, which the linker of object code does not take
    whole.verify()
    return bytes(_machine().emit_object(whole))


def _numba_type(types: Any, letter: str) -> Any:
    element = getattr(types, _NUMBA_TYPES[letter])
    return types.CPointer(element) if letter.isupper() else element


def _addresses(code: bytes) -> tuple[int, int]:
    """Links machine code into the process; ORC answers an unknown symbol with an exception, not with an abort."""
    llvm = _llvm()
    jit = llvm.create_lljit_compiler(_machine(), suppress_errors=True)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in symbols().items():
        library.import_symbol(name, address)
    for name in (ENTRY, FUNCTION):
        library.export_symbol(name)
    try:
        tracker = library.link(jit, ENTRY)
    except RuntimeError as error:
        raise NoNativeCodeError(f"native code cannot be loaded ({error})") from error
    _ALIVE.append((jit, tracker))
    return int(tracker[ENTRY]), int(tracker[FUNCTION])


@once
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NoNativeCodeError(f"numba is not installed ({error})") from error
    except Exception as error:  # OSError, say, if its shared library does not fit this system
        raise NoNativeCodeError(f"llvmlite cannot be loaded ({reason(error)})") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _machine() -> Any:
    llvm = _llvm()
    processor, features = _host()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=processor, features=features, opt=3, jit=True)


@once
def _host() -> tuple[str, str]:
    """The processor that code is made for, and its features."""
    llvm = _llvm()
    return isa.target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features())


@once
def vectors() -> isa.Vectors:
    """What tiles of matmuls are made of, for kernels and who launches them. Raises NoNativeCodeError."""
    return isa.vectors(_host()[1])


@once
def converts_half() -> bool:
    """Whether the processor has instructions for float16; without, LLVM calls a helper that no library here has."""
    return isa.architecture() == "aarch64" or "+f16c" in _host()[1].split(",")


@once
def _numba() -> Any:
    """numba, told of the limit: it optimises for a processor before our own target machine sees the code."""
    try:
        import numba
        from numba.core.registry import cpu_target
    except Exception as error:  # numba refuses some versions of numpy with an ImportError, and may fail in other ways
        raise NoNativeCodeError(f"numba cannot be imported ({reason(error)})") from error
    if isa.limit() is not None:
        numba.config.CPU_NAME, numba.config.CPU_FEATURES = _host()
        if cpu_target.target_context.codegen().magic_tuple()[1:] != _host():
            raise NoNativeCodeError("numba compiled for this processor before ACLNN_MAX_ISA could limit it")
    return numba


@once
def _fingerprint() -> str:
    """Everything that machine code depends on, as one name."""
    try:
        compilers = [f"{package} {version(package)}" for package in ("numba", "llvmlite")]
    except PackageNotFoundError as error:
        raise NoNativeCodeError(f"{error.name} is not installed, aclnn-cpu[fast] brings it") from error
    return fingerprint(*compilers, *_host(), str(DATA))
