"""A kernel on tensors of Python, and its result as a new one: see native/tensor_calls.py."""

from __future__ import annotations

from typing import Any

from aclnn.kernels.native.abi import (
    ALLOCATE,
    ANSWER,
    CALL_METHOD,
    COMPUTE,
    COMPUTE_BLOCK,
    FIRST_ARGUMENT,
    FREE,
    ITEM_SIZE,
    LET_GO,
    LOCK,
    LOOK_AT,
    MAKE_TENSOR,
    NO,
    REACHES,
    READ_NUMBER,
    RESULT_KIND,
    RESULT_RANK,
    RESULT_SIZE,
    STORAGE,
    STORAGE_BEGIN,
    STORAGE_SIZE,
    TENSORS,
    UNLOCK,
)
from aclnn.kernels.native.memory import LINE
from aclnn.kernels.source.calls import address_of, call_entry, call_function, pointer
from aclnn.kernels.source.helpers import inner
from aclnn.kernels.source.indirect import words

# DLTensor, by word: where it lies, its device, rank and dtype, shape, strides, and bytes to its first element.
_PLACE, _KIND, _SHAPE, _STRIDES, _BEYOND, _TENSOR_WORDS = 0, 2, 3, 4, 5, 6
# DLManagedTensorVersioned, by word: the version, whatever its owner wants, what deletes it, flags, and a DLTensor.
_VERSION, _OWNER, _DELETER, _FLAGS, _TENSOR = 0, 1, 2, 3, 4
_MANAGED_WORDS = _TENSOR + _TENSOR_WORDS
_FAILED = -1
_STATUS = 0xFFFFFFFF  # of a word that a function gives back whose result is an int


def compute(lo: int, hi: int, objects: Any, table: Any) -> None:
    """Items are objects. Computes from them what is asked for, as a new object; the answer is no where one has no
    memory that is fit for it, or there is none for the result."""
    table[ANSWER] = table[NO]
    if hi != table[TENSORS]:
        return
    seen, block, made = words(_TENSOR_WORDS), pointer(table[COMPUTE_BLOCK]), words(1)
    for i in range(hi):
        if call_function(table[LOOK_AT], objects[i], address_of(seen)) & _STATUS != 0:
            table[ANSWER] = 0  # PyTorch has told Python why
            return
        place, end = seen[_PLACE] + seen[_BEYOND], end_of(table, objects[i])
        if end == _FAILED:
            table[ANSWER] = 0
            return
        if seen[_PLACE] == 0 or place % table[ITEM_SIZE] != 0 or place + table[REACHES + i] > end:
            return
        block[FIRST_ARGUMENT + i] = place
    result = new_result(table)
    if result == 0:
        return
    block[FIRST_ARGUMENT + hi] = pointer(result)[_TENSOR + _PLACE]
    state = call_function(table[UNLOCK], 0, 0)
    call_entry(table[COMPUTE], table[COMPUTE_BLOCK])
    call_function(table[LOCK], state, 0)
    fails = call_function(table[MAKE_TENSOR], result, address_of(made)) & _STATUS != 0
    table[ANSWER] = 0 if fails else made[0]


@inner
def new_result(table: Any) -> int:
    """A block of memory that begins with what describes it, which whoever takes it frees as one; 0 if there is none."""
    rank = table[RESULT_RANK]
    head = 8 * (_MANAGED_WORDS + 2 * rank)
    block: int = call_function(table[ALLOCATE], head + LINE + table[RESULT_SIZE], 0)
    if block == 0:
        return 0
    result = pointer(block)
    shape, place = block + 8 * _MANAGED_WORDS, block + head + LINE - 1
    result[_VERSION], result[_OWNER], result[_DELETER], result[_FLAGS] = 1, 0, table[FREE], 0
    result[_TENSOR + _PLACE], result[_TENSOR + 1] = place - place % LINE, 1  # the CPU, as DLPack counts devices
    result[_TENSOR + _KIND], result[_TENSOR + _BEYOND] = table[RESULT_KIND], 0
    result[_TENSOR + _SHAPE], result[_TENSOR + _STRIDES] = shape, shape + 8 * rank
    for i in range(2 * rank):
        result[_MANAGED_WORDS + i] = table[REACHES + table[TENSORS] + i]
    return block


@inner
def end_of(table: Any, tensor: int) -> int:
    """Where the memory of a tensor's storage ends, which may have been made smaller since it was made; _FAILED if
    Python has been told why nobody knows."""
    storage = call_function(table[CALL_METHOD], table[STORAGE], tensor)
    if storage == 0:
        return _FAILED
    begin = number(table, table[STORAGE_BEGIN], storage)
    size = number(table, table[STORAGE_SIZE], storage) if begin != _FAILED else _FAILED
    call_function(table[LET_GO], storage, 0)
    return begin + size if size != _FAILED else _FAILED


@inner
def number(table: Any, method: int, thing: int) -> int:
    """What a method of a storage says; _FAILED if it says nothing."""
    said = call_function(table[CALL_METHOD], method, thing)
    if said == 0:
        return _FAILED
    value: int = call_function(table[READ_NUMBER], said, 0)
    call_function(table[LET_GO], said, 0)
    return value
