"""Files of torch.save without torch: only tensors come out, whatever the pickle says."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.golden.read import containers
from tests.golden.dumping import BF16, hostile_pickle, pt_bytes, save_pt

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def refused(path: Path) -> str:
    with pytest.raises(aclnn.AclnnError) as caught:
        containers.read(path)
    assert str(path) in caught.value.message
    return str(caught.value.message)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.float64, np.int64])
def test_tensors_are_mapped(tmp_path: Path, dtype: Any) -> None:
    save_pt(tmp_path / "a.pt", X.astype(dtype))
    found = containers.read(tmp_path / "a.pt").arrays["a"]
    assert found.dtype == dtype
    assert (found == X.astype(dtype)).all()
    assert not found.flags.writeable


def test_torch_is_not_imported(tmp_path: Path) -> None:
    save_pt(tmp_path / "a.pt", X)
    code = (
        "import sys; from pathlib import Path; from aclnn.golden.read import containers\n"
        f"print(containers.read(Path({str(tmp_path / 'a.pt')!r})).arrays['a'].sum(), 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "276.0 False\n"


def test_strides_and_scalars(tmp_path: Path) -> None:
    save_pt(tmp_path / "t.pt", X, pt_bytes(X.reshape(6, 4), [1, 6]))
    assert (containers.read(tmp_path / "t.pt").arrays["t"] == X.reshape(-1)[:24].reshape(4, 6).T).all()
    save_pt(tmp_path / "s.pt", np.array(3.5, np.float32))
    assert containers.read(tmp_path / "s.pt").arrays["s"] == 3.5


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


NESTED = b"\x80\x02)q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(60))  # 2**60 when written out

PICKLES = {
    "a function": (hostile_pickle(), "other than tensors, which are never loaded"),
    "an object": (pickle.dumps(ValueError("x"), protocol=2), "other than tensors, which are never loaded"),
    "a newer object": (pickle.dumps(ValueError("x"), protocol=4), "other than tensors, which are never loaded"),
    "a number": (pickle.dumps(3, protocol=2), "is a int, not a tensor"),
    "nothing": (b"", "is damaged"),
    "no end": (b"\x80\x02K\x01", "is damaged"),
    "too few": (b"\x80\x02R.", "is damaged"),
    "memory": (b"\x80\x02K\x01r\xff\xff\xff\x7f.", "is a int, not a tensor"),
    "nested keys": (NESTED + b"}h\x3cK\x01s.", "whose keys are no texts"),
    "another storage": (pt_bytes(X).replace(text("0"), text("9")), "is not there or too short"),
    "too long": (pt_bytes(np.zeros((5, 5), np.float32)), "is not there or too short"),
    "too far": (pt_bytes(X, [12, 4, 100]), "reaches beyond its storage"),
    "backwards": (pt_bytes(X, [12, 4, -1]), "has shape"),
    "repeated": (pt_bytes(X, [0, 0, 0]).replace(b"J\x02\0\0\0", b"J\0\0\0\x40"), "but only"),
    "a storage that is none": (b"\x80\x02" + text("x") + b"Q.", "is damaged"),
}


@pytest.mark.parametrize("name", PICKLES)
def test_what_is_no_tensor_is_refused(tmp_path: Path, name: str) -> None:
    told, sentence = PICKLES[name]
    save_pt(tmp_path / "a.pt", X, told)
    assert sentence in refused(tmp_path / "a.pt")


def test_other_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old.pt").write_bytes(pickle.dumps({"x": 1}))
    assert "legacy format" in refused(tmp_path / "old.pt")
    with zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/data.pkl", pt_bytes(X))
    assert "packed members" in refused(tmp_path / "packed.pt")
    with zipfile.ZipFile(tmp_path / "big.pt", "w") as packed:
        packed.writestr("a/data.pkl", pt_bytes(X))
        packed.writestr("a/byteorder", "big")
    assert "the other byte order" in refused(tmp_path / "big.pt")
    with zipfile.ZipFile(tmp_path / "none.pt", "w") as packed:
        packed.writestr("a/b", "")
    assert "no data.pkl" in refused(tmp_path / "none.pt")
