"""Arrays that are nearly what an operator takes: one table, one sentence each; and what is taken although it is odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from tests.hostile.liars import answer

X = np.array([-2, -1, 0, 1], np.float32)
EXPECTED = aclnn.elu(X, engine="reference")


def read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


REFUSED: dict[str, tuple[Any, str]] = {
    "big-endian": (X.astype(">f4"), "self has dtype >f4, of foreign byte order; convert it to native order."),
    "object": (X.astype(object), "self has dtype object, which no aclDataType stands for."),
    "structured": (np.zeros(4, [("a", "f4")]), "which no aclDataType stands for."),
    "text": (np.array(["1"]), "self has dtype <U1, which no aclDataType stands for."),
    "dates": (np.zeros(4, "M8[s]"), "self has dtype datetime64[s], which no aclDataType stands for."),
    "long double": (X.astype(np.longdouble), "which no aclDataType stands for."),
    "masked": (np.ma.array(X, mask=X < 0), "self is a masked array; its mask would be ignored, so fill it first."),
    "integers": (X.astype(np.int32), "self has dtype int32; on Atlas A2 it must be float32, float16 or bfloat16."),
    "booleans": (X > 0, "self has dtype bool; on Atlas A2 it must be float32, float16 or bfloat16."),
    "complex": (
        X.astype(np.complex64),
        "self has dtype complex64; on Atlas A2 it must be float32, float16 or bfloat16.",
    ),
    "float64": (X.astype(np.float64), "it must be float32, float16 or bfloat16 (product cpu takes float64)."),
    "rank 9": (X.reshape((1,) * 8 + (4,)), "self has rank 9 (shape [1, 1, 1, 1, 1, 1, 1, 1, 4]); it must be 0..8."),
    "list": ([1.0, 2.0], "self is a list; it must be a numpy array, a torch tensor, an aclnn.Tensor or anything with"),
    "number": (1.5, "self is a float; it must be a numpy array"),
    "None": (None, "self is null; it must be given."),
    "bytes": (b"1234", "self is a bytes; it must be a numpy array"),
    "memoryview": (memoryview(X), "self is a memoryview; it must be a numpy array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    value, says = REFUSED[name]
    for engine in ("auto", "numpy", "reference"):
        refused = answer(lambda engine=engine: aclnn.elu(value, engine=engine))  # type: ignore[misc]
        assert refused is not None
        assert says in refused.message


class Subclass(np.ndarray):  # type: ignore[type-arg]
    """An array with arithmetic of its own, which must not reach ours."""

    def __mul__(self, other: Any) -> Any:
        raise AssertionError("the kernels compute on plain arrays")

    __rmul__ = __mul__

    def __array_ufunc__(self, *given: Any, **more: Any) -> Any:
        raise AssertionError("the kernels compute on plain arrays")


def memory_mapped(folder: Path) -> Any:
    X.tofile(folder / "x.bin")
    return np.memmap(folder / "x.bin", np.float32, "r")


TAKEN = {
    "subclass": lambda folder: X.view(Subclass),
    "matrix": lambda folder: X.reshape(1, 4).view(np.matrix),
    "read-only": lambda folder: read_only(X),
    "memory-mapped": memory_mapped,
    "unaligned": lambda folder: np.frombuffer(b"\0" + X.tobytes(), np.float32, 4, 1),
    "field of a record": lambda folder: np.array([(0, x) for x in X], [("a", "i1"), ("x", "f4")])["x"],
    "reversed twice": lambda folder: X[::-1].copy()[::-1],
}


@pytest.mark.parametrize("engine", ["auto", "numpy", "reference"])
@pytest.mark.parametrize("name", TAKEN)
def test_what_is_odd_but_holds_the_numbers_is_taken(name: str, engine: str, tmp_path: Path) -> None:
    found = aclnn.elu(TAKEN[name](tmp_path), engine=engine)
    assert type(found) is np.ndarray
    assert np.allclose(found, EXPECTED)


def test_a_scalar_array_and_a_numpy_scalar_are_tensors_of_rank_0() -> None:
    for value in (np.array(-1, np.float32), np.float32(-1)):
        found = aclnn.elu(value)
        assert found.shape == ()
        assert np.allclose(found, np.expm1(np.float32(-1)))


OUTS: dict[str, tuple[Any, str]] = {
    "read-only": (read_only(X), "out is read-only; an output must be writable."),
    "masked": (np.ma.array(X.copy()), "out is a masked array"),
    "unaligned": (np.ndarray(4, np.float32, bytearray(17), 1), "out is a view whose elements do not lie on element"),
    "too short": (np.zeros(3, np.float32), "out has shape [3]"),
    "every element the same": (np.broadcast_to(np.zeros(1, np.float32), 4), "out is read-only"),
    "windows": (
        np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 2), (4, 4)),
        "out has shape [2, 2] but self has shape [4]",
    ),
    "a list": ([X.copy()], "out is a list; it must be a numpy array"),
    "a number": (np.float32(1), "out"),
}


@pytest.mark.parametrize("name", OUTS)
def test_outputs_that_cannot_be_written(name: str) -> None:
    out, says = OUTS[name]
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.elu(X, out=out)
    assert says in refused.value.message


def test_an_output_over_itself_is_refused() -> None:
    memory = np.zeros(5, np.float32)
    windows = np.lib.stride_tricks.as_strided(memory, (2, 4), (4, 4))
    with pytest.raises(aclnn.AclnnError, match="two indexes meet the same element"):
        aclnn.elu(np.zeros((2, 4), np.float32), out=windows)
    assert not memory.any()


@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda o: o.name)
def test_an_output_on_an_input_is_refused_before_anything_is_written(op: Any) -> None:
    """Every operator, every pair of an output and an input of the same dtype and size: only ELU may work in place."""
    from aclnn.contract.cases import fill
    from tests.harness import call, tensors

    case = next(ops.cases(op))
    if op.in_place or not op.fresh:
        pytest.skip("works in place")
    for out in (a for a in op.fresh if a.kind == "tensor"):
        filled = fill(case)
        victim = next(t for n, t in tensors(filled).items() if not op.by_name[n.partition("[")[0]].out)
        target = filled[out.name]
        if target is None or target.owner.dtype != victim.owner.dtype:
            continue
        storage = np.zeros(max(target.owner.size, victim.owner.size), target.owner.dtype)
        storage[: victim.owner.size] = victim.owner.reshape(-1)
        before = storage.tobytes()
        victim.owner, target.owner = storage, storage
        victim.spec = victim.spec._replace(storage=storage.size)
        target.spec = target.spec._replace(storage=storage.size)
        with pytest.raises(aclnn.AclnnError, match="overlaps"):
            call(case, filled)
        assert storage.tobytes() == before


@pytest.mark.torch
def test_torch_tensors_that_are_not_what_they_seem() -> None:
    import torch

    x = torch.tensor(X)
    grown = torch.tensor(X, requires_grad=True)
    found: Any = aclnn.elu(grown)
    assert not found.requires_grad
    assert np.allclose(found.numpy(), EXPECTED)
    for value, says in (
        (x.to("meta"), "device meta; move it to the CPU first"),
        (torch.complex(x, x).conj(), "lazily conjugated or negated"),
        (torch.complex(x, x).conj().imag, "lazily conjugated or negated"),
        (x.to_sparse(), "layout torch.sparse_coo; it must be a dense one"),
        (x.double(), "float64"),
    ):
        refused = answer(lambda value=value: aclnn.elu(value))  # type: ignore[misc]
        assert refused is not None
        assert says in refused.message
