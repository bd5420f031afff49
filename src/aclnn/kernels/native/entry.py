"""The way into native code: what the code around a kernel looks like, and how Python calls it.

A kernel does the items lo … hi − 1 of some work. The entry finds this thread's share of the items and unpacks the
arguments; the function takes numpy arrays from Python and goes through the entry. A kernel without arrays is a question
about the objects it is given, and the function gives back its answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from aclnn.base.geometry import Array
from aclnn.kernels.native import isa
from aclnn.kernels.native.abi import ANSWER, FIRST_ARGUMENT, MOST_THREADS, NO, YES
from aclnn.kernels.native.memory import DATA, LAYOUT_IS_KNOWN, function_address

ENTRY, FUNCTION = "aclnn_entry", "aclnn_function"
_UNLOCK, _LOCK, _KEEP = "aclnn_unlock", "aclnn_lock", "aclnn_keep"
_FAST_CALL = 0x80  # METH_FASTCALL
_DEFAULT_MXCSR = 0x1F80  # to nearest, subnormals stay, nothing traps


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


class Entry:
    """Native code `void entry(int64 *block)`: its address, and the same as a Python function that drops the GIL.

    A block has: items, items per chunk, the addresses of omp_get_thread_num and omp_get_num_threads or the numbers
    themselves, then the arguments; see native.abi.
    """

    __slots__ = ("_method", "address", "call")

    def __init__(self, address: int, function: int):
        self.address = address
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._method = _Method(b"kernel", function, _FAST_CALL, None)

    def on_arrays(self, block: Any, owner: object) -> Callable[..., object] | None:
        """A function (workspace, *arrays) that points the first arguments of a block at the arrays, as many as there
        are pointers to elements before anything else, and runs. It keeps the block and its owner alive, and looks at
        nothing but how many are given. None where nobody knows how an array lies in memory."""
        return self._as_function(np.frombuffer(block, np.int64), owner) if LAYOUT_IS_KNOWN else None

    def about_objects(self, table: Array, owner: object) -> Callable[..., bool]:
        """A function that asks the kernel about all that it is given, and gives back the object that it puts first in
        the table: one that stands there already (an address in the code itself would be too far for a processor of
        ARM), or one that it makes."""
        function: Callable[..., bool] = self._as_function(table, owner)
        return function

    def _as_function(self, first: Array, owner: object) -> Any:
        return _make_builtin()(ctypes.addressof(self._method), first, (owner, self))


@cache
def _make_builtin() -> Any:
    """PyCFunction_NewEx: (method, first argument of every call, whatever it shall keep alive)."""
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


def symbols() -> dict[str, int]:
    """What the code calls, by its name there: the functions that drop the GIL, take it, and count a reference."""
    python = ctypes.pythonapi
    functions = {_UNLOCK: python.PyEval_SaveThread, _LOCK: python.PyEval_RestoreThread, _KEEP: python.Py_IncRef}
    return {name: function_address(function) for name, function in functions.items()}


def entry_code(target: str, types: str, arrays: int) -> str:
    """LLVM code of entry and function of a kernel whose first arguments are pointers to the elements of arrays."""
    from llvmlite import ir

    word, nothing = ir.IntType(64), ir.VoidType()
    elements = {
        "i": word,
        "f": ir.FloatType(),
        "I": word,
        "F": ir.FloatType(),
        "H": ir.IntType(16),
        "B": ir.IntType(16),
        "P": ir.IntType(32),
    }
    kinds = [elements[t].as_pointer() if t.isupper() else elements[t] for t in types]
    unused = word.as_pointer()  # numba's functions take where to put a result and an exception, and return a status
    module = ir.Module()
    kernel = ir.Function(module, ir.FunctionType(ir.IntType(32), [unused, unused, word, word, *kinds]), target)
    entry = ir.Function(module, ir.FunctionType(nothing, [word.as_pointer()]), ENTRY)
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
    with _default_floats(b):
        b.call(kernel, [ignored, ignored, lo, hi, *given])
    b.ret_void()
    (_add_function if arrays else _add_question)(module, entry, arrays)
    return str(module)


def _add_function(module: Any, entry: Any, arrays: int) -> None:
    """What Python calls: `PyObject *function(PyObject *block, PyObject *const *given, Py_ssize_t count)`.
    It gives back the workspace, for it must give something; null, which is an error, if the count is wrong."""
    from llvmlite import ir

    word, thing, nothing = ir.IntType(64), ir.IntType(8).as_pointer(), ir.VoidType()
    function = ir.Function(module, ir.FunctionType(thing, [thing, thing.as_pointer(), word]), FUNCTION)
    block_array, given, count = function.args
    unlock = ir.Function(module, ir.FunctionType(thing, []), _UNLOCK)
    lock, keep = (ir.Function(module, ir.FunctionType(nothing, [thing]), name) for name in (_LOCK, _KEEP))
    b = ir.IRBuilder(function.append_basic_block())

    def memory_of(array: Any) -> Any:
        return b.load(b.bitcast(b.gep(array, [word(DATA)]), word.as_pointer()))

    with b.if_then(b.icmp_signed("!=", count, word(1 + arrays)), likely=False):
        b.ret(thing(None))
    block = b.inttoptr(memory_of(block_array), word.as_pointer())
    for i in range(arrays):
        where = memory_of(b.load(b.gep(given, [word(1 + i)])))
        b.store(where, b.gep(block, [word(FIRST_ARGUMENT + i)]))
    state = b.call(unlock, [])
    b.call(entry, [block])
    b.call(lock, [state])
    workspace = b.load(given)
    b.call(keep, [workspace])
    b.ret(workspace)


def _add_question(module: Any, entry: Any, _: int) -> None:
    """What Python calls: `PyObject *function(PyObject *table, PyObject *const *given, Py_ssize_t count)`. The kernel is
    given the objects and the table, and holds the GIL. No answer is an error that Python has been told of."""
    from llvmlite import ir

    word, thing = ir.IntType(64), ir.IntType(8).as_pointer()
    function = ir.Function(module, ir.FunctionType(thing, [thing, thing.as_pointer(), word]), FUNCTION)
    table_array, given, count = function.args
    b = ir.IRBuilder(function.append_basic_block())
    table = b.load(b.bitcast(b.gep(table_array, [word(DATA)]), word.as_pointer()))
    block = b.alloca(word, size=word(FIRST_ARGUMENT + 2))
    for i, value in enumerate((count, count, word(0), word(0), b.ptrtoint(given, word), table)):
        b.store(value, b.gep(block, [word(i)]))
    b.call(entry, [block])
    words = b.inttoptr(table, word.as_pointer())
    answer, *known = (b.load(b.gep(words, [word(i)])) for i in (ANSWER, YES, NO))
    keep = ir.Function(module, ir.FunctionType(ir.VoidType(), [thing]), _KEEP)
    is_known = b.or_(*(b.icmp_unsigned("==", answer, one) for one in known))
    with b.if_then(b.and_(is_known, b.icmp_unsigned("!=", answer, word(0)))):
        b.call(keep, [b.inttoptr(answer, thing)])
    b.ret(b.inttoptr(answer, thing))


@contextmanager
def _default_floats(b: Any) -> Iterator[None]:
    """The default floating-point state in between, and back to what was there: threads of OpenMP keep the state that
    whoever started them had. See kernels/native/floating.py; here it takes two instructions."""
    from llvmlite import ir

    if isa.architecture() == "x86_64":
        small, text = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [text])
        get, put = (ir.Function(b.module, kind, f"llvm.x86.sse.{name}mxcsr") for name in ("st", "ld"))
        before, default = b.alloca(small), b.alloca(small)
        b.call(get, [b.bitcast(before, text)])
        b.store(small(_DEFAULT_MXCSR), default)
        b.call(put, [b.bitcast(default, text)])
        yield
        b.call(put, [b.bitcast(before, text)])
    elif isa.architecture() == "aarch64":
        word = ir.IntType(64)
        get = ir.Function(b.module, ir.FunctionType(word, []), "llvm.aarch64.get.fpcr")
        put = ir.Function(b.module, ir.FunctionType(ir.VoidType(), [word]), "llvm.aarch64.set.fpcr")
        before = b.call(get, [])
        b.call(put, [word(0)])
        yield
        b.call(put, [before])
    else:
        yield


def _share(b: Any, items: Any, chunk: Any, who: Any, how_many: Any) -> tuple[Any, Any]:
    """lo and hi of this thread: whole chunks, as evenly as they go; everything when `who` is null."""
    from llvmlite import ir

    word = ir.IntType(64)
    alone = b.icmp_unsigned("==", who, word(0))
    start = b.block
    with b.if_then(b.not_(alone)):
        me, team = _numbers(b, who, how_many)
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


def _numbers(b: Any, who: Any, how_many: Any) -> list[Any]:
    """Which thread of how many this is: as the block says, or as the functions there do."""
    from llvmlite import ir

    word, question = ir.IntType(64), ir.FunctionType(ir.IntType(32), [])
    said, start = [b.sub(who, word(1)), how_many], b.block
    with b.if_then(b.icmp_unsigned(">", who, word(MOST_THREADS))):
        asked = [b.sext(b.call(b.inttoptr(f, question.as_pointer()), []), word) for f in (who, how_many)]
        there = b.block
    merged = []
    for number, answer in zip(said, asked, strict=True):
        phi = b.phi(word)
        phi.add_incoming(number, start)
        phi.add_incoming(answer, there)
        merged.append(phi)
    return merged
