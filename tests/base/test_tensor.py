"""Tensors: views on storage, and the arrays they are adopted from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import aclnn
from aclnn.base.foreign_arrays import adopt, to_torch
from aclnn.base.format import Format
from aclnn.base.geometry import contiguous_strides, meets_itself, overlap, reach, same_view
from aclnn.base.tensor import Tensor, dense, view_at

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@given(SHAPES.flatmap(lambda s: st.tuples(st.just(s), st.tuples(*[st.integers(-6, 6)] * len(s)))))
def test_meets_itself_agrees_with_counting(view: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    shape, strides = view
    places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*shape)]
    assert meets_itself(shape, strides) == (len(set(places)) < len(places))
    assert reach(shape, strides) == (min(places), max(places))


def test_meets_itself_gives_up_where_counting_would_take_too_long() -> None:
    assert meets_itself((3000, 3000), (2, 3)) is None
    assert meets_itself((3000, 3000), (3000, 1)) is False
    assert meets_itself((2**40, 0), (0, 0)) is False


@given(hnp.arrays(np.float32, SHAPES, elements=st.floats(-1, 1, width=32)), st.data())
def test_a_strided_numpy_view_is_adopted_without_a_copy(array: np.ndarray, data: st.DataObject) -> None:
    slices = tuple(slice(None, None, data.draw(st.sampled_from([1, -1, 2]))) for _ in array.shape)
    view = array[slices].T
    taken = adopt(view, "x")
    assert taken.view is view
    assert taken.spec.shape == view.shape
    assert tuple(s * 4 for s in taken.spec.strides) == view.strides


@given(SHAPES, st.integers(0, 3))
def test_view_at_reads_and_writes_the_same_elements_as_numpy(shape: tuple[int, ...], offset: int) -> None:
    size = int(np.prod(shape))
    storage = np.arange(size + offset, dtype=np.float32)
    spec = dense(aclnn.base.dtype.FLOAT32, shape)._replace(offset=offset, storage=storage.size)
    view = view_at(storage.ctypes.data, spec, storage)
    assert np.array_equal(view, storage[offset:].reshape(shape))
    view[...] = -1
    assert (storage[offset:] == -1).all()
    assert np.array_equal(storage[:offset], np.arange(offset))


def test_a_tensor_on_storage_with_every_kind_of_stride() -> None:
    storage = np.arange(12, dtype=np.float32)
    assert Tensor(storage, (3, 2), (-4, 1), 8).view.tolist() == [[8, 9], [4, 5], [0, 1]]
    assert Tensor(storage, (2, 3), (0, 2), 1).view.tolist() == [[1, 3, 5], [1, 3, 5]]
    assert Tensor(storage, (), (), 7).view.item() == 7
    assert Tensor(storage).spec.shape == (12,)
    assert Tensor(storage, format="nchw").spec.format is Format.NCHW
    assert "offset=7" in repr(Tensor(storage, (), (), 7))


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [((4,), (4,), 0), ((2,), (-1,), 0), ((1,), (1,), 12), ((3, 3), (4, 1), 2), ((2,), (1,), -1)],
)
def test_a_view_outside_its_storage_is_never_built(shape: tuple, strides: tuple, offset: int) -> None:
    tensor = Tensor(np.zeros(12, np.float32), shape, strides, offset)
    with pytest.raises(aclnn.AclnnError, match="of a storage of 12"):
        _ = tensor.view


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Tensor([1.0]), "contiguous numpy array"),
        (lambda: Tensor(np.zeros((4, 4), np.float32)[:, 1]), "contiguous numpy array"),
        (lambda: Tensor(np.zeros(3, object)), "no aclDataType"),
        (lambda: Tensor(np.zeros(3, np.float32), (3,), (1, 1)), "one stride per dimension"),
        (lambda: Tensor(np.zeros(3, np.float32), (-3,)), "at least 0"),
        (lambda: Tensor(np.zeros(3, np.float32), format="XYZ"), "there is no format 'XYZ'"),
    ],
)
def test_a_tensor_that_makes_no_sense_is_refused_with_a_sentence(make: object, says: str) -> None:
    with pytest.raises(aclnn.AclnnError, match=says):
        make()  # type: ignore[operator]


REFUSED = {
    "object": (np.array([None]), "no aclDataType"),
    "big-endian": (np.zeros(2, ">f4"), "foreign byte order"),
    "text": (np.array(["a"]), "no aclDataType"),
    "structured": (np.zeros(2, [("a", "f4")]), "no aclDataType"),
    "longdouble": (np.zeros(2, np.longdouble), "no aclDataType"),
    "masked": (np.ma.masked_array([1.0], mask=[True]), "masked array"),
    "list": ([1.0, 2.0], "a list"),
    "string": ("x", "a str"),
    "number": (1.0, "a float"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_a_tensor_is_refused_with_a_sentence(kind: str) -> None:
    value, says = REFUSED[kind]
    with pytest.raises(aclnn.AclnnError, match=says) as refused:
        adopt(value, "gradOutput")
    assert refused.value.code == 161002
    assert refused.value.argument == "gradOutput"


WIDTHS = [np.uint8, np.float16, np.float32, np.float64, np.complex128]


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_stride_of_one_element_may_be_wild_up_to_the_limit(dtype: type, sign: int) -> None:
    storage = np.arange(4).astype(dtype)
    for stride in (2**57, 2**58, 2**58 + 1, 2**60 - 1, 2**60):
        assert Tensor(storage, (1, 2), (sign * stride, 1), 1).view.tolist() == [[1, 2]]
    with pytest.raises(aclnn.AclnnError, match=r"strides out of bounds: at most 64 numbers of up to 2\*\*60"):
        Tensor(storage, (1, 2), (sign * (2**60 + 1), 1))
    with pytest.raises(aclnn.AclnnError, match="of a storage of 4 elements"):
        _ = Tensor(storage, (2,), (sign * 2**60,)).view
    with pytest.raises(aclnn.AclnnError, match="of a storage of 4 elements"):
        _ = Tensor(storage, (1,), (1,), sign * 2**60).view
    with pytest.raises(aclnn.AclnnError, match="offset out of bounds"):
        Tensor(storage, (1,), (1,), sign * (2**60 + 1))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_a_view_has_no_more_bytes_than_64_bits_can_count(dtype: type) -> None:
    storage = np.ones(4, dtype)
    most = (2**63 - 1) // storage.itemsize
    rows, columns = 2**30, most // 2**30
    assert Tensor(storage, (rows, columns), (0, 0)).view.shape == (rows, columns)
    for shape in ((rows, columns + 1), (2**60, 2**60), (2**60, 16, 0)):
        with pytest.raises(aclnn.AclnnError, match=r"has shape \[.*\]; its bytes cannot be counted in 64 bits"):
            _ = Tensor(storage, shape, (0,) * len(shape)).view


@pytest.mark.torch
def test_wild_views_of_torch_are_read_or_refused_too() -> None:
    import torch

    for dtype in (torch.float64, torch.float16):
        x = torch.ones(4, dtype=dtype)
        assert adopt(x.as_strided((1, 2), (2**60, 1)), "x").view.tolist() == [[1, 1]]
    with pytest.raises(aclnn.AclnnError, match="cannot be counted in 64 bits"):
        adopt(torch.ones(1, dtype=torch.float64).as_strided((2**31, 2**29), (0, 0)), "x")


def test_subclasses_and_zero_dimensional_arrays_are_taken() -> None:
    assert adopt(np.zeros((1, 1), np.float32).view(np.recarray), "x").spec.shape == (1, 1)
    assert adopt(np.float32(3), "x").spec.shape == ()
    assert adopt(np.array(3, np.float32), "x").spec.strides == ()


def test_a_view_between_element_boundaries_is_copied_for_reading_and_refused_for_writing() -> None:
    packed = np.zeros(4, np.dtype([("tag", "u1"), ("value", "<f4")]))
    packed["value"] = [1, 2, 3, 4]
    taken = adopt(packed["value"], "x")
    assert taken.view is not None
    assert taken.view.tolist() == [1, 2, 3, 4]
    with pytest.raises(aclnn.AclnnError, match="element boundaries"):
        adopt(packed["value"], "x", writable=True)


def test_a_read_only_output_is_refused() -> None:
    frozen = np.zeros(2, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(aclnn.AclnnError, match="read-only"):
        adopt(frozen, "gradInput", writable=True)
    with pytest.raises(aclnn.AclnnError, match="read-only"):
        adopt(Tensor(frozen), "gradInput", writable=True)


def test_overlap_and_same_view() -> None:
    a = np.zeros(12, np.float32)
    assert overlap(a[::2], a[:4])
    assert not overlap(a[::2], a[1::2])
    assert same_view(a[:4], a[:4])
    assert not same_view(a[:4], a[1:5])
    assert not same_view(a[:4], a[:8:2])
    assert same_view(a[None, :4], a.reshape(1, 12)[:, :4])


def test_contiguous_strides_count_empty_axes_as_one() -> None:
    assert contiguous_strides((2, 0, 3)) == (3, 3, 1)
    assert contiguous_strides(()) == ()


@pytest.mark.torch
def test_torch_tensors_are_adopted_without_a_copy_bfloat16_too() -> None:
    import torch

    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64):
        tensor = torch.arange(6).to(dtype).reshape(2, 3).t()
        taken = adopt(tensor, "x", writable=True)
        assert taken.from_torch
        assert taken.spec.shape == (3, 2)
        assert taken.spec.strides == (1, 3)
        assert taken.view is not None
        taken.view[0, 0] = 5
        assert tensor[0, 0] == 5
        assert torch.equal(to_torch(taken.view), tensor)


@pytest.mark.torch
def test_the_storage_of_a_torch_tensor_stays_its_own() -> None:
    """PyTorch's numpy() would forbid to resize it, which FSDP does."""
    import torch

    tensor = torch.ones(3)
    assert adopt(tensor, "x").view.tolist() == [1, 1, 1]
    tensor.untyped_storage().resize_(0)


@pytest.mark.torch
def test_torch_tensors_that_numpy_cannot_see_are_refused_with_a_sentence() -> None:
    import torch

    freed = torch.ones(3)
    freed.untyped_storage().resize_(0)
    for tensor, says in (
        (torch.empty(2, device="meta"), "device meta"),
        (torch.zeros(2, 2).to_sparse(), "layout"),
        (torch.zeros(2, dtype=torch.complex64).conj(), "conjugated"),
        (freed, "Tensor with 0 elements of memory at address 0"),
        (torch._efficientzerotensor(3), "3 elements of memory at address 0; a freed, traced or batched tensor"),
    ):
        with pytest.raises(aclnn.AclnnError, match=says):
            adopt(tensor, "x")
    assert adopt(torch.ones(2, requires_grad=True), "x").view is not None


class _Producer:
    """Something that speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_unknown_dlpack_producers_are_adopted_and_get_numpy_back() -> None:
    array = np.array([-1.0, 2.0], np.float32)
    taken = adopt(_Producer(array), "x")
    assert taken.view is not None
    assert np.shares_memory(taken.view, array)
    assert isinstance(aclnn.elu_backward(_Producer(array), 1.0, 1.0, 1.0, False, _Producer(array)), np.ndarray)


def test_a_producer_that_lies_is_refused() -> None:
    class Liar:
        def __dlpack__(self, **options: object) -> object:
            raise RuntimeError("not today")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(aclnn.AclnnError, match="not today"):
        adopt(Liar(), "x")
