"""Every way to say what is to be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn.base.dtype import BFLOAT16
from aclnn.golden.compare import compare
from tests.golden.planting import Planted, planted, report_of

ELU = {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False}


def described(run: Planted, **tensors: Any) -> str:
    attributes = {a.name: run.case.values[a.name] for a in run.op.inputs if not a.is_tensor}
    attributes = {n: getattr(v, "value", v) for n, v in attributes.items() if v is not None}
    return json.dumps({"operator": run.op.name, "attributes": attributes, "tensors": tensors})


def dump(folder: Path, run: Planted, suffix: str = ".npy") -> Path:
    """A folder with one file per tensor."""
    folder.mkdir(parents=True, exist_ok=True)
    for arg in run.op.tensors:
        value = run.arrays[arg.name]
        for i, array in enumerate(value if isinstance(value, list) else [value]):
            if array is not None:
                name = f"{arg.name}.{i}" if isinstance(value, list) else arg.name
                np.save(folder / f"{name}.npy", array) if suffix == ".npy" else array.tofile(folder / f"{name}{suffix}")
    return folder


def test_a_folder_of_npy_files_with_a_description(tmp_path: Path) -> None:
    run = planted("aclnnLstmBackward", layers=2)
    dump(tmp_path / "step0", run)
    (tmp_path / "step0" / "case.json").write_text(described(run))
    found = compare(tmp_path / "step0")
    assert found.sound
    assert found.passed
    assert len(found.compared) == 3 + 8
    assert compare(tmp_path / "step0" / "case.json").sound


def test_bfloat16_npy_files(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", dtype=BFLOAT16)
    folder = dump(tmp_path, run)
    (folder / "case.json").write_text(described(run))
    found = compare(folder)
    assert found.sound
    assert found.reports[0].dtype == "bfloat16"


def test_bin_files_take_dtype_and_shape_from_the_description(tmp_path: Path) -> None:
    run = planted("aclnnConvolutionBackward")
    folder = dump(tmp_path / "dump", run, ".bin")
    shapes = {n: {"dtype": "float32", "shape": run.arrays[n].shape} for n in ("gradOutput", "input", "weight")}
    (folder / "case.json").write_text(described(run, **shapes))
    found = compare(folder)  # the outputs are what the contract says they are
    assert found.sound
    assert len(found.compared) == 3
    (folder / "gradInput.bin").write_bytes(bytes(10))
    with pytest.raises(aclnn.AclnnError, match=r"gradInput has 10 bytes, but float32 \[2, 4, 7, 7\] has 1568"):
        compare(folder)


def test_bin_inputs_need_a_description(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    folder = dump(tmp_path, run, ".bin")
    (folder / "case.json").write_text(described(run))
    with pytest.raises(aclnn.AclnnError, match=r"\.bin is bare bytes; say its dtype and shape in case\.json"):
        compare(folder)
    assert compare(folder, dtype="float32", shape=(3, 4)).sound


def test_strided_storage_in_bin_files(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(3, 4))
    folder = dump(tmp_path, run)
    (folder / "gradInput.npy").unlink()
    storage = np.full(40, np.nan, np.float32)
    storage[2:].reshape(-1)[: 3 * 10].reshape(3, 10)[:, :8:2] = run.arrays["gradInput"]
    storage.tofile(folder / "gradInput.bin")
    layout = {"dtype": "float32", "shape": [3, 4], "strides": [10, 2], "offset": 2}
    (folder / "case.json").write_text(described(run, gradInput=layout))
    assert compare(folder).sound


@pytest.mark.torch
def test_a_folder_of_pt_files(tmp_path: Path) -> None:
    import torch

    run = planted("aclnnEluBackward")
    for name in ("gradOutput", "selfOrResult"):
        torch.save(torch.from_numpy(run.given[name]), tmp_path / f"{name}.pt")
    torch.save({"gradInput": torch.from_numpy(run.arrays["gradInput"])}, tmp_path / "results.pt")
    assert compare(tmp_path, op="elu_backward", arguments=ELU).sound


def test_two_files_with_one_tensor(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    dump(dump(tmp_path, run), run, ".bin")
    with pytest.raises(aclnn.AclnnError, match="has two files with a tensor gradInput"):
        compare(tmp_path, op="elu_backward", arguments=ELU)


def test_a_folder_of_cases_says_what_is_wrong_with_each(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(20, 30))
    run.save(tmp_path / "a_right.npz")
    run.save(tmp_path / "b_wrong.safetensors", gradInput=run.arrays["gradInput"] + 1)
    (tmp_path / "c_broken.npz").write_bytes(b"PK nonsense")
    folder = dump(tmp_path / "d_folder", run)
    (folder / "case.json").write_text(described(run))
    found = compare(tmp_path)
    assert {r.case: r.status for r in found.reports} == {
        "a_right.npz": "pass",
        "b_wrong.safetensors": "fail",
        "c_broken.npz": "error",
        "d_folder": "pass",
    }
    assert found.exit_code() == 1  # a mismatch that was found stays found
    assert found.reports[0].status == "error"
    (tmp_path / "b_wrong.safetensors").unlink()
    assert compare(tmp_path).exit_code() == 2


def test_a_golden_folder_is_matched_by_name(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward", shape=(20, 30))
    (tmp_path / "t").mkdir()
    (tmp_path / "g").mkdir()
    run.save(tmp_path / "t" / "a.npz")
    run.save(tmp_path / "g" / "a.npz", gradInput=run.arrays["gradInput"] + 1)
    found = compare(tmp_path / "t", tmp_path / "g")
    assert not found.passed
    assert found.reports[0].golden == "given"
    assert found.sound


def test_elements_of_a_list_are_matched_by_either_way_of_naming_them(tmp_path: Path) -> None:
    run = planted("aclnnLstmBackward")
    target = run.save(tmp_path / "case.npz")
    golden = {f"dparamsOut.{i}": array for i, array in enumerate(run.arrays["dparamsOut"])}
    np.savez(tmp_path / "golden.npz", **golden)
    report = report_of(compare(target, tmp_path / "golden.npz"), "dparamsOut[2]")
    assert report.status == "pass"
    assert report.measured.max_abs == 0


def test_folders_of_plain_arrays(tmp_path: Path) -> None:
    a = np.linspace(0, 1, 7, dtype=np.float32)
    for side in "tg":
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "x.npy", a)
        np.savez(tmp_path / side / "y.npy.npz", y=a)  # no case inside, but a case file by its suffix
    with pytest.raises(aclnn.AclnnError, match="does not say which operator"):
        compare(tmp_path / "t" / "y.npy.npz")
    for side in "tg":
        (tmp_path / side / "y.npy.npz").unlink()
    assert compare(tmp_path / "t", tmp_path / "g").passed
    with pytest.raises(
        aclnn.AclnnError, match=r"has no case file and no case\.json; name the operator, or give a golden"
    ):
        compare(tmp_path / "t")


def test_plain_bin_files(tmp_path: Path) -> None:
    a = np.linspace(0, 1, 6).astype(aclnn.bfloat16)
    for side in "tg":
        a.tofile(tmp_path / f"{side}.bin")
    found = compare(tmp_path / "t.bin", tmp_path / "g.bin", dtype="bfloat16", shape=(2, 3))
    assert found.passed
    assert found.reports[0].shape == (2, 3)
    with pytest.raises(aclnn.AclnnError, match=r"t\.bin has 12 bytes of no known dtype; give its dtype and shape"):
        compare(tmp_path / "t.bin", tmp_path / "g.bin")
    with pytest.raises(aclnn.AclnnError, match=r"t has 12 bytes, but bfloat16 \[5\] has 10"):
        compare(tmp_path / "t.bin", tmp_path / "g.bin", dtype="bfloat16", shape=(5,))


def test_a_bare_file_with_the_operator_at_hand(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    np.save(tmp_path / "dump.npy", run.arrays["gradInput"])
    inputs = {n: run.given[n] for n in ("gradOutput", "selfOrResult")}
    assert compare(tmp_path / "dump.npy", op="aclnnEluBackward", arguments={**ELU, **inputs}).sound
    run.arrays["gradInput"].tofile(tmp_path / "dump.bin")
    assert compare(tmp_path / "dump.bin", op="aclnnEluBackward", arguments={**ELU, **inputs}).sound


def test_an_error_of_one_case_of_many_is_said_in_its_place(tmp_path: Path) -> None:
    planted("aclnnEluBackward").save(tmp_path / "right.npz")
    brain = planted("aclnnEluBackward", dtype=BFLOAT16)
    brain.save(tmp_path / "wrong_product.npz")
    found = compare(tmp_path, product="310P")
    assert {r.case: r.status for r in found.reports} == {"right.npz": "pass", "wrong_product.npz": "error"}
    assert found.sound is None


def test_a_file_without_outputs(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    with pytest.raises(aclnn.AclnnError, match="has no output that aclnnEluBackward computes in this call"):
        run.compare(tmp_path, gradInput=None)


def test_in_place_results_come_with_what_was_read(tmp_path: Path) -> None:
    run = planted("aclnnInplaceElu")
    assert run.compare(tmp_path).sound
    run.given = None  # type: ignore[assignment]
    with pytest.raises(aclnn.AclnnError, match=r"has no tensor selfRef\.given; aclnnInplaceElu needs it"):
        run.compare(tmp_path)


def test_the_product_can_be_chosen(tmp_path: Path) -> None:
    path = planted("aclnnEluBackward", dtype=BFLOAT16).save(tmp_path / "case.npz")
    assert compare(path).sound
    with pytest.raises(aclnn.AclnnError, match="Atlas inference"):
        compare(path, product="310P")
