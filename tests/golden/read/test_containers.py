"""Files that are not what they claim: one sentence, nothing executed, nothing of the claimed size allocated."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aclnn
from aclnn.golden.read import containers

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


def safetensors(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


def refused(path: Path) -> str:
    with pytest.raises(aclnn.AclnnError) as error:
        containers.read(path)
    assert error.value.code == 161002
    assert error.value.message.startswith(f"{path} ")
    assert "\n" not in error.value.message
    assert error.value.message.endswith(".")
    return error.value.message


def test_everything_readable_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.save(tmp_path / "b.npy", X.astype(">f4"))
    for name in "afb":
        assert (containers.read(tmp_path / f"{name}.npy").arrays[name] == X).all()
    np.savez_compressed(tmp_path / "c.npz", x=X, e=np.empty((0, 3), np.float32), s=np.float32(3))
    found = containers.read(tmp_path / "c.npz").arrays
    assert (found["x"] == X).all()
    assert found["e"].shape == (0, 3)
    assert found["s"].shape == ()
    X.tofile(tmp_path / "r.bin")
    raw = containers.read(tmp_path / "r.bin")
    assert raw.raw == {"r"}
    assert raw.arrays["r"].tobytes() == X.tobytes()


def test_stored_members_are_mapped_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", x=X)
    assert isinstance(containers.read(tmp_path / "c.npz").arrays["x"], np.memmap)


@pytest.mark.torch
def test_pt_files(tmp_path: Path) -> None:
    import torch

    torch.save({"x": torch.from_numpy(X), "b": torch.ones(2, 3, dtype=torch.bfloat16).T}, tmp_path / "d.pt")
    found = containers.read(tmp_path / "d.pt").arrays
    assert (found["x"] == X).all()
    assert found["b"].dtype == aclnn.bfloat16
    assert found["b"].shape == (3, 2)
    torch.save(torch.from_numpy(X), tmp_path / "one.pt")
    assert (containers.read(tmp_path / "one.pt").arrays["one"] == X).all()


@pytest.mark.torch
def test_pickled_objects_in_pt_are_never_loaded(tmp_path: Path) -> None:
    import torch

    trace = tmp_path / "executed"
    torch.save({"x": Bomb(trace)}, tmp_path / "bomb.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Bomb(trace)))
    torch.save({"x": 3}, tmp_path / "number.pt")
    assert "other than tensors, which are never loaded" in refused(tmp_path / "bomb.pt")
    refused(tmp_path / "plain.pt")
    assert "x is a int, not a tensor" in refused(tmp_path / "number.pt")
    assert not trace.exists()


def test_pickled_objects_in_npy_are_never_loaded(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    objects = np.array([Bomb(trace)], object)
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "o.npz", x=objects)
    assert "pickled Python objects, which are never loaded" in refused(tmp_path / "o.npy")
    assert "pickled Python objects, which are never loaded" in refused(tmp_path / "o.npz")
    assert not trace.exists()


def test_zip_bombs(tmp_path: Path) -> None:
    header = npy(np.empty(0, np.uint8)).replace(b"(0,)", b"(0,)")
    bomb = npz(tmp_path / "bomb.npz", {"x.npy": header + bytes(200 * 2**20)}, zipfile.ZIP_DEFLATED)
    assert "more than 100 times as many" in refused(bomb)


def test_a_member_that_unpacks_to_more_than_it_says_is_not_read_whole(tmp_path: Path) -> None:
    path = npz(tmp_path / "long.npz", {"x.npy": npy(X) + bytes(2**20)}, zipfile.ZIP_DEFLATED)
    assert "its header 48" in refused(path)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".safetensors", ".pt"])
def test_truncated_files(tmp_path: Path, suffix: str) -> None:
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".npy":
        np.save(whole, X)
    elif suffix == ".pt":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        torch.save(torch.from_numpy(X), whole)
    else:
        containers.write(whole, containers.Contents({"x": X}, "{}"))
    data = whole.read_bytes()
    for length in (0, 1, 7, len(data) // 2, len(data) - 1):
        path = tmp_path / f"cut{suffix}"
        path.write_bytes(data[:length])
        refused(path)


@pytest.mark.parametrize("suffix", containers.SUFFIXES)
def test_missing_files_and_folders(tmp_path: Path, suffix: str) -> None:
    assert "cannot be read: no such file or directory" in refused(tmp_path / f"none{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    refused(tmp_path / f"folder{suffix}")


def test_unknown_suffix(tmp_path: Path) -> None:
    assert "must be one of .npz, .npy, .safetensors, .pt, .pth, .bin" in refused(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, "its shape says 12"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "at bytes 0 to 8 of 4"),
        ({"x": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, "dtype F99"),
        ({"x": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}, "shape"),
        ({"x": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 4]}}, "its shape says"),
        ({"x": 3}, "damaged"),
        ([], "no JSON object"),
        (b"{", "damaged"),
        (b"[" * 20000, "damaged"),
    ],
)
def test_wrong_safetensors(tmp_path: Path, header: Any, reason: str) -> None:
    assert reason in refused(safetensors(tmp_path / "x.safetensors", header, bytes(4)))


def test_safetensors_header_length_is_not_believed(tmp_path: Path) -> None:
    assert "claims" in refused(safetensors(tmp_path / "x.safetensors", {}, length=2**60))


def test_a_header_that_claims_a_huge_array(tmp_path: Path) -> None:
    data = npy(X).replace(b"(3, 4), }       ", b"(3, 400000000)}".ljust(16))
    (tmp_path / "huge.npy").write_bytes(data)
    assert "its header says 4800000000" in refused(tmp_path / "huge.npy")
    npz(tmp_path / "huge.npz", {"x.npy": data})
    refused(tmp_path / "huge.npz")


def test_structured_arrays_and_double_names(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.zeros(2, [("a", "f4")]))
    assert "is no tensor" in refused(tmp_path / "s.npy")
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as packed:
        packed.writestr("x.npy", npy(X))
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("x.npy", npy(X))
    assert "two arrays named x" in refused(tmp_path / "d.npz")


def read_or_refuse(path: Path) -> None:
    with contextlib.suppress(aclnn.AclnnError):
        containers.read(path)


@given(st.binary(max_size=300), st.sampled_from([".npz", ".npy", ".safetensors"]))
def test_garbage(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    path = tmp_path_factory.mktemp("garbage") / f"x{suffix}"
    path.write_bytes(data)
    read_or_refuse(path)


@given(st.integers(0, 400), st.integers(0, 255), st.sampled_from([".npz", ".npy", ".safetensors"]))
def test_flipped_bytes(tmp_path_factory: pytest.TempPathFactory, at: int, to: int, suffix: str) -> None:
    path = tmp_path_factory.mktemp("flipped") / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, X)
    else:
        containers.write(path, containers.Contents({"x": X}, "{}"))
    data = bytearray(path.read_bytes())
    data[at % len(data)] = to
    path.write_bytes(data)
    read_or_refuse(path)
