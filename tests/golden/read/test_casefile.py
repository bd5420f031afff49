"""Case files keep a call and its tensors, whatever they look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.contract.cases import Case
from aclnn.golden.read.casefile import load_case, save_case
from tests.golden.planting import Planted, planted

CASES = [
    pytest.param(case, id=f"{op.name}-{i}-{case.note}") for op in ops.all_ops() for i, case in enumerate(ops.cases(op))
]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_what_is_saved_is_loaded(case: Case, tmp_path: Path) -> None:
    run = Planted(case, engine="reference")
    for suffix in (".npz", ".safetensors"):
        check_loaded(case, run, run.save(tmp_path / f"case{suffix}"))


def check_loaded(case: Case, run: Planted, path: Path) -> None:
    found = load_case(path)
    assert found.op is case.op
    assert found.call.device is case.device
    for arg in case.op.args:
        if not arg.is_tensor:
            assert found.call[arg.name] == case.values[arg.name]
        elif arg.given:
            assert same(run.given[arg.name], found.given[arg.name])
        if arg.out and case.values[arg.name] is not None and arg.takes_part(case.call):
            assert same(run.arrays[arg.name], found.targets[arg.name])


def test_layout_survives(tmp_path: Path) -> None:
    case = next(c for c in ops.cases(ops.find("aclnnEluBackward")) if c.note == "reversed selfOrResult")
    found = load_case(Planted(case).save(tmp_path / "case.npz"))
    wanted = case.values["selfOrResult"]
    assert found.call["selfOrResult"][:4] == wanted[:4]
    assert found.call["selfOrResult"].storage == wanted.storage


def test_numpy_alone_can_write_one(tmp_path: Path) -> None:
    path = tmp_path / "by_hand.npz"
    y = np.array([-2, -1, 0, 1], np.float32)
    attributes = {"alpha": 1.0, "scale": 1, "inputScale": {"dtype": "float16", "value": 1.0}, "isResult": True}
    text = json.dumps({"operator": "aclnnEluBackward", "attributes": attributes})
    np.savez(path, grad_output=y, selfOrResult=y, gradInput=np.array([2, -0.0, 0, 1], np.float32), __case__=text)
    found = load_case(path)
    assert found.call["alpha"].value == 1
    assert found.call["inputScale"].dtype.name == "float16"
    assert found.targets["gradInput"].tolist() == [2, 0, 0, 1]


def test_safetensors_of_others_can_be_read_and_ours_by_them(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    run = planted("aclnnEluBackward")
    ours = safetensors.load_file(run.save(tmp_path / "ours.safetensors"))
    assert same(ours["gradInput"], run.arrays["gradInput"])
    described = {
        "operator": "aclnnEluBackward",
        "attributes": {"alpha": 1, "scale": 1, "inputScale": 1, "isResult": False},
    }
    tensors = {n: run.arrays[n] for n in ("gradOutput", "selfOrResult", "gradInput")}
    safetensors.save_file(tensors, tmp_path / "theirs.safetensors", metadata={"__case__": json.dumps(described)})
    assert same(load_case(tmp_path / "theirs.safetensors").targets["gradInput"], run.arrays["gradInput"])


def test_bfloat16_after_np_save_is_bfloat16_again(tmp_path: Path) -> None:
    x = np.array([1.5, -2], aclnn.bfloat16)
    np.save(tmp_path / "x.npy", x)
    assert np.load(tmp_path / "x.npy").dtype == np.dtype("V2")
    found = aclnn.golden.compare.compare(tmp_path / "x.npy", x)
    assert found.passed
    assert found.reports[0].dtype == "bfloat16"


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    with pytest.raises(aclnn.AclnnError, match="cannot be written: no such file or directory"):
        run.save(tmp_path / "missing" / "case.npz")
    with pytest.raises(aclnn.AclnnError, match=r"must be \.npz or \.safetensors"):
        run.save(tmp_path / "case.zip")
    with pytest.raises(AttributeError):
        save_case(tmp_path / "case.npz", run.op, run.case.call, {**run.arrays, "gradInput": object()})
    assert list(tmp_path.iterdir()) == []


def _without(path: Path, name: str) -> None:
    with np.load(path) as stored:
        kept = {k: stored[k] for k in stored.files if k != name}
    np.savez(path, **kept)


def _described(path: Path, **changed: Any) -> None:
    with np.load(path) as stored:
        kept = {k: stored[k] for k in stored.files}
    text = json.loads(str(kept["__case__"]))
    kept["__case__"] = np.array(json.dumps({**text, **changed}))
    np.savez(path, **kept)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gradOutput", "has no tensor gradOutput; aclnnEluBackward needs it."),
        ("__case__", "has no __case__; without it nobody knows which operator it is a case of."),
    ],
)
def test_missing_parts(tmp_path: Path, name: str, sentence: str) -> None:
    path = planted("aclnnEluBackward").save(tmp_path / "case.npz")
    _without(path, name)
    with pytest.raises(aclnn.AclnnError) as refused:
        load_case(path)
    assert refused.value.message == f"{path} {sentence}"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"operator": "aclnnFoo"}, "there is no operator 'aclnnFoo'"),
        ({"operator": 3}, "it must be a JSON object with an operator"),
        ({"attributes": []}, "its attributes must be a JSON object"),
        ({"attributes": {}}, "has no attribute alpha; aclnnEluBackward needs it"),
        ({"attributes": {"beta": 1}}, "has an attribute 'beta', which aclnnEluBackward has not"),
        ({"tensors": {"foo": {}}}, "has a tensor 'foo', which aclnnEluBackward has not"),
        ({"tensors": {"gradOutput": []}}, "each of its tensors must be a JSON object"),
        ({"tensors": {"gradOutput": {"dtype": "float7"}}}, "gradOutput has dtype 'float7'"),
        (
            {"tensors": {"gradOutput": {"dtype": "float16"}}},
            "gradOutput has dtype float32 but its description says float16",
        ),
        ({"tensors": {"gradOutput": {"shape": [5, 5]}}}, r"gradOutput has 48 bytes, but float32 \[5, 5\] has 100"),
        ({"tensors": {"gradOutput": {"shape": [-3, -4]}}}, "gradOutput has 48 bytes"),
        ({"tensors": {"gradOutput": {"shape": "x"}}}, "gradOutput has shape x; it must be a list of sizes"),
        (
            {"tensors": {"gradOutput": {"shape": [3, 4], "strides": [4, 2]}}},
            "touches elements 0 to 14 of a storage of 12",
        ),
        ({"tensors": {"gradOutput": {"shape": [10**6, 10**6], "strides": [0, 0]}}}, "shows 1000000000000 elements"),
        ({"tensors": {"gradOutput": {"format": "NCXX"}}}, "there is no format 'NCXX'"),
        ({"product": "A9"}, "there is no product 'A9'"),
    ],
)
def test_wrong_descriptions(tmp_path: Path, changed: dict[str, Any], sentence: str) -> None:
    path = planted("aclnnEluBackward").save(tmp_path / "case.npz")
    _described(path, **changed)
    with pytest.raises(aclnn.AclnnError, match=sentence):
        load_case(path)


def test_wrong_shape_and_dtype_are_what_the_contract_says(tmp_path: Path) -> None:
    run = planted("aclnnEluBackward")
    wrong = run.case.but("", gradInput=run.case.values["gradInput"]._replace(shape=(4, 3), strides=(3, 1)))
    path = tmp_path / "case.npz"
    save_case(path, run.op, wrong.call, {**run.arrays, "gradInput": np.zeros((4, 3), np.float32)})
    with pytest.raises(aclnn.AclnnError, match=r"gradInput has shape \[4, 3\].*\[3, 4\]"):
        load_case(path)


def test_lists_have_no_holes(tmp_path: Path) -> None:
    path = planted("aclnnLstmBackward").save(tmp_path / "case.npz")
    _without(path, "params.1")
    with pytest.raises(aclnn.AclnnError, match=r"has no tensor params\.1 but later ones"):
        load_case(path)


def test_outputs_may_be_missing(tmp_path: Path) -> None:
    path = planted("aclnnLstmBackward").save(tmp_path / "case.npz")
    _without(path, "dparamsOut.1")
    _without(path, "dxOut")
    found = load_case(path)
    assert found.targets["dxOut"] is None
    assert [t is None for t in found.targets["dparamsOut"]][:3] == [False, True, False]
