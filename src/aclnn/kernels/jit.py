"""Nopython functions as native code: compiled by numba once, kept in a private checked folder, called by address.

A kernel is a module-level function `name(lo, hi, *arguments)` in aclnn.kernels.nopython that does the items lo … hi − 1
of some work. `load("elu.backward", "FFFfffi")` gives its entry. numba is only imported when the folder does not have
the code yet: a warm process needs llvmlite alone (0.1 s instead of 0.7 s), and reads machine code, never a pickle.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import re
import tempfile
import threading
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.base.folder import private_folder
from aclnn.kernels.nopython.agreed import FIRST_ARGUMENT
from aclnn.kernels.strides import DATA, LAYOUT_IS_KNOWN

log = logging.getLogger("aclnn")

POINTER = {FLOAT32: "F", FLOAT16: "H", BFLOAT16: "B"}
"""The letter of a pointer to elements. float16 travels as int16 and bfloat16 as uint16; see nopython.half."""

_NUMBA_TYPES = {"i": "int64", "f": "float32", "I": "int64", "F": "float32", "H": "int16", "B": "uint16"}
_ENTRY, _ON_ARRAYS = "aclnn_entry", "aclnn_entry_on_arrays"
_HERE = Path(__file__).parent
_LOCK = threading.Lock()
_LOADED: dict[str, Entry] = {}
_ALIVE: list[Any] = []  # what owns the loaded code


class NoNativeCodeError(Exception):
    """Why there is no native code here."""


class Entry:
    """Native code `void entry(int64 *block)`: its address, and the same as a Python function that drops the GIL.

    A block has: items, items per chunk, the addresses of omp_get_thread_num and omp_get_num_threads (0: this thread
    does everything), then the arguments.

    `on_arrays` takes, after the block, the numpy arrays that the first arguments are to point to: as many as there are
    pointers to elements before anything else. It is None where nobody knows how such an array lies in memory.
    """

    __slots__ = ("address", "call", "on_arrays")

    def __init__(self, address: int, on_arrays: int, arrays: int):
        self.address = address
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.py_object] * arrays)
        self.on_arrays = kind(on_arrays) if LAYOUT_IS_KNOWN else None


def letters(*dtypes: DType) -> str:
    return "".join(POINTER[d] for d in dtypes)


def load(name: str, types: str) -> Entry:
    """The entry of a kernel for arguments of these types, compiled now if need be. Raises NoNativeCodeError.

    Types are one letter each: i int64, f float32; I, F, H, B pointers to int64, float32, float16, bfloat16.
    """
    key = f"{name}-{types}"
    with _LOCK:
        if key not in _LOADED:
            _LOADED[key] = Entry(*_addresses(_object(name, types, key)), _arrays(types))
        return _LOADED[key]


def _arrays(types: str) -> int:
    """How many pointers to elements come first."""
    return len(types) - len(types.lstrip("".join(POINTER.values())))


def _object(name: str, types: str, key: str) -> bytes:
    """Machine code from the folder, or fresh."""
    if "H" in types or name.endswith("fp16"):
        _need_half()
    folder = _folder()
    known = _read(folder, key) if folder else None
    if known is not None:
        return known
    made = _compile(name, types)
    if folder:
        _write(folder, key, made)
    return made


def _compile(name: str, types: str) -> bytes:
    import numba

    if numba.config.DISABLE_JIT:
        raise NoNativeCodeError("numba is disabled (NUMBA_DISABLE_JIT)")
    module, _, function = name.rpartition(".")
    try:
        text = getattr(import_module(f"aclnn.kernels.nopython.{module}"), function)
        arguments = [_numba_type(numba.types, letter) for letter in "ii" + types]
        compiled = numba.cfunc(numba.types.void(*arguments), error_model="numpy")(text)
        return _machine_code(compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc."), types)
    except Exception as error:  # another numba may say no in any way; the next kernel serves
        log.warning("%s(%s) cannot be compiled: %s", name, types, error)
        raise NoNativeCodeError(f"numba cannot compile {name} ({type(error).__name__})") from error


def _machine_code(text: str, kernel: str, types: str) -> bytes:
    llvm = _llvm()
    # The wrapper that numba adds would call into Python if the text raised, which it cannot: out with it.
    whole = llvm.parse_assembly(re.sub(r"^define [^\n]*@cfunc\..*?^}$", "", text, flags=re.DOTALL | re.MULTILINE))
    whole.link_in(llvm.parse_assembly(_entry_code(kernel, types)))
    for symbol in (*whole.functions, *whole.global_variables):
        if not symbol.is_declaration and symbol.name not in (_ENTRY, _ON_ARRAYS):
            symbol.linkage = "internal"  # numba's are common or weak, which the linker of object code does not take
    whole.verify()
    return bytes(_machine().emit_object(whole))


def _numba_type(types: Any, letter: str) -> Any:
    element = getattr(types, _NUMBA_TYPES[letter])
    return types.CPointer(element) if letter.isupper() else element


def _entry_code(target: str, types: str) -> str:
    """LLVM code of the entry: finds this thread's share of the items, unpacks the block and calls the kernel.
    The entry on arrays writes their addresses into the block before."""
    from llvmlite import ir

    word, nothing = ir.IntType(64), ir.VoidType()
    elements = {
        "i": word,
        "f": ir.FloatType(),
        "I": word,
        "F": ir.FloatType(),
        "H": ir.IntType(16),
        "B": ir.IntType(16),
    }
    kinds = [elements[t].as_pointer() if t.isupper() else elements[t] for t in types]
    unused = word.as_pointer()  # numba's functions take where to put a result and an exception, and return a status
    module = ir.Module()
    kernel = ir.Function(module, ir.FunctionType(ir.IntType(32), [unused, unused, word, word, *kinds]), target)
    entry = ir.Function(module, ir.FunctionType(nothing, [word.as_pointer()]), _ENTRY)
    b = ir.IRBuilder(entry.append_basic_block())

    def slot(i: int) -> Any:
        return b.load(b.gep(entry.args[0], [word(i)]))

    lo, hi = _share(b, *(slot(i) for i in range(FIRST_ARGUMENT)))
    given = []
    for i, (letter, kind) in enumerate(zip(types, kinds, strict=True)):
        value = slot(FIRST_ARGUMENT + i)
        if letter == "f":  # the slot holds the bits of a float32
            value = b.bitcast(b.trunc(value, ir.IntType(32)), kind)
        given.append(b.inttoptr(value, kind) if letter.isupper() else value)
    ignored = b.alloca(word)
    b.call(kernel, [ignored, ignored, lo, hi, *given])
    b.ret_void()
    _add_entry_on_arrays(module, entry, _arrays(types))
    return str(module)


def _add_entry_on_arrays(module: Any, entry: Any, arrays: int) -> None:
    from llvmlite import ir

    word = ir.IntType(64)
    objects = [ir.IntType(8).as_pointer()] * arrays
    kind = ir.FunctionType(ir.VoidType(), [word.as_pointer(), *objects])
    block, *given = ir.Function(module, kind, _ON_ARRAYS).args
    b = ir.IRBuilder(block.parent.append_basic_block())
    for i, array in enumerate(given, FIRST_ARGUMENT):
        where = b.load(b.bitcast(b.gep(array, [word(DATA)]), word.as_pointer()))
        b.store(where, b.gep(block, [word(i)]))
    b.call(entry, [block])
    b.ret_void()


def _share(b: Any, items: Any, chunk: Any, who: Any, how_many: Any) -> tuple[Any, Any]:
    """lo and hi of this thread: whole chunks, as evenly as they go; everything when `who` is null."""
    from llvmlite import ir

    word, small = ir.IntType(64), ir.IntType(32)
    question = ir.FunctionType(small, [])
    alone = b.icmp_unsigned("==", who, word(0))
    start = b.block
    with b.if_then(b.not_(alone)):
        me, team = (b.sext(b.call(b.inttoptr(f, question.as_pointer()), []), word) for f in (who, how_many))
        chunks = b.sdiv(b.add(items, b.sub(chunk, word(1))), chunk)
        ends = []
        for k in (me, b.add(me, word(1))):
            end = b.mul(b.sdiv(b.mul(chunks, k), team), chunk)
            ends.append(b.select(b.icmp_signed("<", end, items), end, items))
        together = b.block
    bounds = []
    for all_of_it, part in zip((word(0), items), ends, strict=True):
        merged = b.phi(word)
        merged.add_incoming(all_of_it, start)
        merged.add_incoming(part, together)
        bounds.append(merged)
    return bounds[0], bounds[1]


def _addresses(code: bytes) -> tuple[int, int]:
    """Links machine code into the process; ORC answers an unknown symbol with an exception, not with an abort."""
    llvm = _llvm()
    jit = llvm.create_lljit_compiler(_machine(), suppress_errors=True)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in (_ENTRY, _ON_ARRAYS):
        library.export_symbol(name)
    try:
        tracker = library.link(jit, _ENTRY)
    except RuntimeError as error:
        raise NoNativeCodeError(f"native code cannot be loaded ({error})") from error
    _ALIVE.append((jit, tracker))
    return int(tracker[_ENTRY]), int(tracker[_ON_ARRAYS])


@cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NoNativeCodeError(f"numba is not installed ({error})") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _machine() -> Any:
    llvm = _llvm()
    processor, features = _host()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=processor, features=features, opt=3, jit=True)


@cache
def _host() -> tuple[str, str]:
    llvm = _llvm()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _need_half() -> None:
    """Without the instruction LLVM calls a helper that no library here has."""
    intel = _llvm().get_process_triple().startswith("x86_64")
    if intel and "+f16c" not in _host()[1].split(","):
        raise NoNativeCodeError("this processor has no float16 conversion")


@cache
def _fingerprint() -> str:
    """Everything the machine code depends on: sources, compilers, processor."""
    made_from = hashlib.sha256()
    for package in ("numba", "llvmlite"):
        try:
            made_from.update(f"{package} {version(package)}\n".encode())
        except PackageNotFoundError as error:
            raise NoNativeCodeError(f"{package} is not installed, aclnn-cpu[fast] brings it") from error
    made_from.update("\n".join([*_host(), str(DATA)]).encode())
    for source in sorted([*(_HERE / "nopython").glob("*.py"), _HERE / "jit.py"]):
        made_from.update(source.name.encode() + source.read_bytes())
    return made_from.hexdigest()[:16]


def _folder() -> Path | None:
    """Our folder of machine code; None if there is none that only we can write to."""
    fingerprint = _fingerprint()
    try:
        return private_folder(fingerprint)
    except OSError as error:
        refused = error.errno is None  # not by the operating system: it is there, but others can write to it
        log.log(logging.WARNING if refused else logging.DEBUG, "%s; kernels are compiled anew", error)
        return None


def _digest(key: str, code: bytes) -> bytes:
    return hashlib.sha256(f"{_fingerprint()} {key}\n".encode() + code).digest()


def _read(folder: Path, key: str) -> bytes | None:
    """The code behind its digest; a damaged, foreign or unreadable file counts as absent."""
    try:
        raw = (folder / key).read_bytes()
    except OSError:
        return None
    return raw[32:] if raw[:32] == _digest(key, raw[32:]) else None


def _write(folder: Path, key: str, code: bytes) -> None:
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(key, code) + code)
        os.replace(name, folder / key)  # whole or not at all, whoever else is writing
    except OSError as error:
        log.debug("kernel cache not written: %s", error)
        if name is not None:
            Path(name).unlink(missing_ok=True)  # a full disk is not made fuller by every process
