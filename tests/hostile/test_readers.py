"""Files and command lines written by someone else: tables, case files, arguments of any bytes and any size."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import aclnn
from aclnn import ops
from aclnn.base.device import CPU
from aclnn.cases.batch import Options, Result, repro
from aclnn.cases.table import COLUMNS, parse, read_table
from aclnn.cli.app import app
from aclnn.contract.cases import fill, views
from aclnn.golden.read import casefile, containers
from aclnn.golden.read.load import Hand, subjects
from tests.hostile.liars import answer

AWKWARD = st.text(alphabet=st.sampled_from(list("0123456789x,=@:.-+eE\"'#\n\r\t ;|<>[]()²٣αnaif\0\x1b￿")), max_size=40)
NAMES = st.sampled_from([op.name for op in ops.all_ops()])
SIZES = st.sampled_from(
    ["shape", "dtype", "kernel", "stride", "groups", "batch", "hidden_size", "num_layers", "product"]
)
NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(
        ["9" * 5000, "1e400", "nan", "inf", "-0", "²", "٣", "true", "none", "x", "2x", "0x10", "1_000", "()"]
    ),
    AWKWARD,
)


def few_lines(text: str) -> bool:
    """A path may bring a newline of its own; we add none."""
    return text.count("\n") <= 1


@settings(max_examples=150)
@given(st.binary(max_size=300))
@example(b"op,sizes\naclnnElu,shape=2x3\n")
@example(b'op,case\naclnnElu,"two\nlines"\naclnnElu,one\n')
@example(b'op\n"\n')
def test_tables_of_random_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(data)
    answer(lambda: read_table(path, CPU))
    answer(lambda: list(subjects(path, None, Hand())))


@settings(max_examples=150)
@given(NAMES, st.lists(st.tuples(SIZES, NUMBERS), max_size=3), AWKWARD, AWKWARD, AWKWARD)
@example("aclnnElu", [("shape", "1e400x2")], "", "", "")
@example("aclnnElu", [], "self=1,1@²", "", "")
@example("aclnnElu", [], "", "", "self=nan:²")
def test_rows_of_awkward_cells(
    tmp_path_factory: pytest.TempPathFactory, op: str, sizes: list[tuple[str, str]], layout: str, data: str, inject: str
) -> None:
    import csv

    path = tmp_path_factory.mktemp("table") / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerow([op, "c", "", "cpu", " ".join(f"{n}={v}" for n, v in sizes), layout, data, inject])
    answer(lambda: read_table(path, CPU))


@settings(max_examples=200)
@given(NUMBERS)
def test_values_of_any_text(text: str) -> None:
    answer(lambda: parse(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
LAYOUT = st.dictionaries(st.sampled_from(["dtype", "shape", "strides", "offset", "format"]), JSON, max_size=5)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["alpha", "scale", "inputScale", "isResult"]), JSON), LAYOUT, JSON)
def test_case_files_with_any_description(
    tmp_path_factory: pytest.TempPathFactory, attributes: dict[str, Any], layout: dict[str, Any], product: Any
) -> None:
    path = tmp_path_factory.mktemp("case") / "c.npz"
    described = {
        "operator": "aclnnEluBackward",
        "product": product,
        "attributes": {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False} | attributes,
        "tensors": {"gradOutput": layout},
    }
    x = np.ones((2, 3), np.float32)
    containers.write(path, containers.Contents({"gradOutput": x, "selfOrResult": x}, json.dumps(described)))
    answer(lambda: casefile.load_case(path))


@pytest.mark.parametrize(
    "text", ["[" * 100000, '{"operator":' * 5000, "9" * 10000, '{"operator": 3}', "null", '"', "{}"]
)
def test_descriptions_that_nest_or_lie(tmp_path: Path, text: str) -> None:
    containers.write(tmp_path / "c.npz", containers.Contents({"gradOutput": np.ones(2, np.float32)}, text))
    refused = answer(lambda: casefile.load_case(tmp_path / "c.npz"))
    assert refused is not None
    assert refused.code == 161002


EVERY_TYPE = (None, True, 3, -1, 2.5, float("nan"), "", "x", [], [1], [[]], {}, {"a": 1}, 10**30, "\x1b", [None, 1])
FIELDS: tuple[tuple[str, ...], ...] = (
    *((), ("operator",), ("product",), ("attributes",), ("attributes", "alpha"), ("attributes", "isResult")),
    *(("tensors",), ("tensors", "gradOutput")),
    *(("tensors", "gradOutput", name) for name in ("dtype", "shape", "strides", "offset", "format")),
)
OF_SAFETENSORS: tuple[tuple[str, ...], ...] = (
    *((), ("__metadata__",), ("__metadata__", "__case__"), ("gradOutput",)),
    *(("gradOutput", name) for name in ("dtype", "shape", "data_offsets")),
)


def put(tree: dict[str, Any], place: tuple[str, ...], value: Any) -> Any:
    if not place:
        return value
    return {**tree, place[0]: put(tree.get(place[0], {}), place[1:], value)}


def a_description() -> dict[str, Any]:
    attributes = {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False}
    return {"operator": "aclnnEluBackward", "attributes": attributes}


@pytest.mark.parametrize("place", FIELDS, ids=".".join)
@pytest.mark.parametrize("kind", [".npz", ".safetensors", "case.json"])
def test_every_field_of_a_description_given_every_type(tmp_path: Path, place: tuple[str, ...], kind: str) -> None:
    x = np.ones((2, 3), np.float32)
    arrays = {"gradOutput": x, "selfOrResult": x, "gradInput": x}
    for i, value in enumerate(EVERY_TYPE):
        said = json.dumps(put(a_description(), place, value))
        path = tmp_path / f"{i}{kind}"
        if kind == "case.json":
            path = tmp_path / str(i)
            path.mkdir()
            (path / kind).write_text(said)
            for name, array in arrays.items():
                np.save(path / f"{name}.npy", array)
        else:
            containers.write(path, containers.Contents(arrays, said))
        answer(lambda path=path: aclnn.compare(path))  # type: ignore[misc]
        answer(lambda path=path: aclnn.compare(x, path))  # type: ignore[misc]


@pytest.mark.parametrize("place", OF_SAFETENSORS, ids=".".join)
def test_every_field_of_a_header_given_every_type(tmp_path: Path, place: tuple[str, ...]) -> None:
    entry = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    header = {"__metadata__": {"__case__": json.dumps(a_description())}, "gradOutput": entry}
    for i, value in enumerate(EVERY_TYPE):
        text = json.dumps(put(header, place, value)).encode()
        path = tmp_path / f"{i}.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(24))
        refused = answer(lambda path=path: containers.read(path))  # type: ignore[misc]
        assert refused is None or "damaged" in refused.message
        answer(lambda path=path: aclnn.compare(path))  # type: ignore[misc]


@pytest.mark.parametrize("value", [0, 1.5, True, [1, 2], "", "x"])
def test_a_case_in_npz_of_any_type(tmp_path: Path, value: Any) -> None:
    np.savez(tmp_path / "c.npz", gradOutput=np.ones(3, np.float32), __case__=np.array(value))
    np.savez(tmp_path / "e.npz", gradOutput=np.ones(3, np.float32), __case__=np.empty(0, "U4"))
    for name in ("c.npz", "e.npz"):
        assert answer(lambda name=name: aclnn.compare(tmp_path / name)) is not None  # type: ignore[misc]


def valid_bytes(suffix: str, folder: Path) -> bytes:
    case = next(ops.cases(ops.find("elu_backward")))
    filled = fill(case)
    path = folder / f"valid{suffix}"
    casefile.save_case(path, case.op, case.call, views(filled, case.op))
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".npy", ".bin"])
@settings(max_examples=150)
@given(data=st.data())
def test_files_with_any_bytes_changed_or_missing(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("file")
    if suffix in (".npz", ".safetensors"):
        damaged = bytearray(valid_bytes(suffix, folder))
    else:
        memory = io.BytesIO()
        np.save(memory, np.ones((2, 3), np.float32))
        damaged = bytearray(memory.getvalue())
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = folder / f"damaged{suffix}"
    path.write_bytes(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    answer(lambda: containers.read(path))
    answer(lambda: casefile.load_case(path))


HOSTILE_ARGUMENTS = [
    ["run", "no such\nfile.csv"],
    ["run", "x" * 5000 + ".csv"],
    ["run", "\0.csv"],
    ["run", "aclnnElu", "--arg", "self=\n"],
    ["run", "aclnnElu", "--arg", "="],
    ["run", "aclnnElu", "--arg", "self=/dev/null"],
    ["run", "aclnnElu", "--arg", "self=/"],
    ["run", "aclnnElu", "--arg", "self=" + "é" * 4000],
    ["run", "aclnnElu", "--arg", "alpha=" + "9" * 5000],
    ["run", "aclnnElu", "--product", "\x1b[31m"],
    ["run", "aclnnElu", "--engine", "x\ny"],
    ["run", "[/bold]"],
    ["describe", "[/]"],
    ["describe", "\x1b]0;title\x07"],
    ["describe", "名" * 3000],
    ["compare", "-tp", "no\nsuch"],
    ["compare", "-tp", "/"],
    ["compare", "-tp", "/dev/zero", "--dtype", "float32"],
    ["compare", "-tp", "x" * 5000],
    ["compare", "-tp", "\0"],
    ["compare", "-tp", ".", "--shape", "2x-3"],
    ["compare", "-tp", ".", "--shape", "9" * 5000],
    ["compare", "-tp", ".", "--standard", "[/]"],
    ["compare", "-tp", ".", "--op", "aclnnElu", "--arg", "alpha=[/]"],
]


@pytest.mark.parametrize("arguments", HOSTILE_ARGUMENTS, ids=lambda a: ascii(" ".join(a))[:50])
def test_commands_with_hostile_arguments_refuse_in_a_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code != 0
    assert isinstance(ended.exception, (aclnn.AclnnError, SystemExit)), ended.exception


def test_a_line_that_runs_a_case_again_is_quoted_for_a_shell() -> None:
    path = Path("a b; touch $(whoami)\n.csv")
    result = Result(3, "aclnnElu", "c", "float32", "numpy", "1", "-", "FAIL", "", "key")
    line = repro(path, result, Options(True, None, 0, 1, False, False, None))
    assert shlex.split(line)[:5] == ["aclnn", "run", str(path), "--line", "3"]


def test_a_table_of_more_than_fits_says_so_and_the_others_run(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("op,product,sizes\naclnnElu,cpu,shape=99999999999999x9\naclnnElu,cpu,shape=2x3\n", encoding="utf-8")
    ended = CliRunner().invoke(app, ["run", str(path), "--check"])
    assert ended.exit_code == 3, ended.exception
    assert "1 passed, 0 failed; 1 broken: our own failure" in ended.stdout


def test_archives_inside_archives_and_names_that_climb(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    with zipfile.ZipFile(path, "w") as packed:
        memory = io.BytesIO()
        np.save(memory, np.ones(2, np.float32))
        packed.writestr("../../climb.npy", memory.getvalue())
    containers.read(path)
    assert not (tmp_path.parent.parent / "climb.npy").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.npz"]
