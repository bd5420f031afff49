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


IMAGE = np.ones((1, 1, 4), np.float32)
INT64 = "it must be -9223372036854775808..9223372036854775807."


def convolve(stride: Any = 1, padding: Any = 0, groups: Any = 1, cube_math_type: Any = 0) -> Any:
    return aclnn.convolution(IMAGE, IMAGE, None, [stride], [padding], [1], False, [0], groups, cube_math_type)


ATTRIBUTES: dict[str, tuple[Any, str]] = {
    "huge list element": (lambda: convolve(stride=10**400), f"stride is an integer of 1329 bits; {INT64}"),
    "above int64": (lambda: convolve(padding=2**63), f"padding is 9223372036854775808; {INT64}"),
    "below int64": (lambda: convolve(padding=-(2**63) - 1), f"padding is -9223372036854775809; {INT64}"),
    "huge count": (lambda: convolve(groups=2**63), f"groups is 9223372036854775808; {INT64}"),
    "most of int64": (lambda: convolve(groups=2**63 - 1), "groups is 9223372036854775807; it must be 1..65535"),
    "above int8": (lambda: convolve(cube_math_type=128), "cubeMathType is 128; it must be -128..127."),
    "huge pad": (lambda: aclnn.conv_tbc(IMAGE, IMAGE, X, -(10**400)), f"pad is an integer of 1329 bits; {INT64}"),
    "huge scalar": (lambda: aclnn.elu(X, alpha=10**400), f"alpha is an integer of 1329 bits; {INT64}"),
    "masked scalar": (lambda: aclnn.elu(X, alpha=np.ma.masked), "alpha is masked; it must be a number."),
    "array of one": (lambda: aclnn.elu(X, alpha=np.ones(1)), "alpha is a contiguous ndarray of dtype float64; it must"),
    "text": (lambda: aclnn.elu(X, alpha="1"), "alpha is a str; it must be a number."),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_that_is_none_says_why(name: str) -> None:
    use, says = ATTRIBUTES[name]
    refused = answer(use)
    assert refused is not None
    assert refused.code == 161002
    assert says in refused.message


def test_numbers_of_other_types_are_numbers() -> None:
    class Half(float):
        pass

    for half in (Half(0.5), np.float32(0.5), np.float64(0.5), np.array(0.5)):
        assert aclnn.elu(X, alpha=half).tolist() == aclnn.elu(X, alpha=0.5).tolist()  # type: ignore[arg-type]


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
    "0-d": (np.zeros((), np.float32), "out has shape [] but self has shape [4]; the two must be equal."),
    "big-endian": (np.zeros(4, ">f4"), "out has dtype >f4, of foreign byte order; convert it to native order."),
    "object": (np.zeros(4, object), "out has dtype object, which no aclDataType stands for."),
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


@pytest.mark.parametrize("kind", [Subclass, np.matrix])
def test_an_output_of_another_class_is_written_and_returned(kind: Any) -> None:
    out = np.zeros((1, 4), np.float32).view(kind)
    assert aclnn.elu(X.reshape(1, 4), out=out) is out
    assert np.allclose(out.view(np.ndarray), EXPECTED)


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
        for use in (lambda value=value: aclnn.elu(value), lambda value=value: aclnn.elu(x, out=value)):  # type: ignore[misc]
            refused = answer(use)
            assert refused is not None
            assert says in refused.message


@pytest.mark.torch
def test_torch_tensors_of_other_classes_and_rank_0_are_taken_and_read_only_ones_are_no_outputs() -> None:
    import torch

    class Subclass(torch.Tensor):  # type: ignore[misc]
        pass

    x = torch.tensor(X)
    for value in (torch.nn.Parameter(x.clone()), x.as_subclass(Subclass)):
        found: Any = aclnn.elu(value)
        assert type(found) is torch.Tensor
        assert not found.requires_grad
        assert np.allclose(found.numpy(), EXPECTED)
    zero: Any = aclnn.elu(x[0])
    assert zero.shape == ()
    assert np.allclose(zero.numpy(), EXPECTED[0])
    with pytest.raises(aclnn.AclnnError, match=r"out has shape \[4\] and strides \[0\], so two indexes meet the same"):
        aclnn.elu(x, out=torch.zeros(1).expand(4))
