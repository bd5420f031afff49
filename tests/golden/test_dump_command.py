"""`aclnn compare` on dumps: parts that are put together, processes, a third party beside, languages, files."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import aclnn
from aclnn.golden.result import DumpComparison
from aclnn.golden.show import page, terminal
from aclnn.golden.steps import SharedWork
from tests.cli.test_cli import Ended
from tests.cli.test_cli import aclnn as run
from tests.golden.dumping import DumpWriter, save
from tests.golden.faults import FAULTS
from tests.golden.large_dump import write as write_large

WRONG = "Functional.conv2d.1.forward"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    w = DumpWriter(tmp_path_factory.mktemp("dump"))
    for n in range(3):
        w.conv(f"Functional.conv2d.{n}", w.draw(2, 3, 8, 8), w.draw(4, 3, 3, 3), w.draw(4), padding=1)
    w.elu("Functional.elu.0", w.draw(5, 6), [1.0, False], 1.0)
    folder = w.finish()
    path = folder / "dump_tensor_data" / f"{WRONG}.output.0.pt"
    from aclnn.golden.read import containers

    off = np.array(containers.read(path).arrays[path.stem])
    off[:, 2] *= np.float32(1.01)
    save(path, off)
    return folder


def command(*words: object) -> Ended:
    return run("compare", *map(str, words))


def test_the_command_names_the_call_the_line_and_the_place(dump: Path, tmp_path: Path) -> None:
    ended = command("-tp", dump, "-o", tmp_path / "r.json", "-o", tmp_path / "r.csv", "-o", tmp_path / "r.xml")
    assert ended.returncode == 1
    assert f"first wrong: {WRONG} (/home/me/train.py:11)" in ended.stdout
    assert "only in channel 2" in ended.stdout
    assert ended.stderr.startswith(f"wrong: {WRONG}: output (/home/me/train.py:11)")
    told = json.loads((tmp_path / "r.json").read_text())
    wrong = [o for o in told["outputs"] if o["verdict"] == "fail"]
    assert [(o["case"], o["output"], o["line"]) for o in wrong] == [(WRONG, "output", "/home/me/train.py:11")]
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["case"] == WRONG
    assert {r["call"] for r in rows} == {"conv2d forward", "conv2d backward", "elu forward", "elu backward"}
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert (suite.get("failures"), suite.get("tests")) == ("1", str(len(rows)))
    assert command("-tp", dump, "--standard", "mixed", "--cap", "100", "--rtol", "0.1").returncode == 0


def test_parts_are_put_together_and_a_missing_one_is_said(dump: Path, tmp_path: Path) -> None:
    whole = aclnn.compare(dump)
    parts = []
    for n in (1, 2, 3):
        found = aclnn.compare(dump, work=SharedWork(shard=(n, 3)))
        parts += found.save(tmp_path / f"{n}.json")
    joined = command("--join", tmp_path, "-o", tmp_path / "all.csv", "-o", tmp_path / "all.html")
    assert joined.returncode == 1, joined.stderr
    assert f"first wrong: {WRONG}" in joined.stdout
    whole.save(tmp_path / "whole.csv")
    assert _table(tmp_path / "all.csv") == _table(tmp_path / "whole.csv")
    parts[1].unlink()
    lacking = command("--join", tmp_path)
    assert (lacking.returncode, "of the parts 2/3 no report is there" in lacking.stderr) == (2, True)
    shutil.copy(parts[0], tmp_path / "again.json")
    assert "are both part 1/3" in command("--join", tmp_path).stderr
    for words, sentence in {
        ("--shard", "4/3"): "must be a part and how many there are",
        ("--join", str(dump / "dump.json")): "it is no report of a dump",
    }.items():
        ended = command(*(("-tp", dump) if words[0] == "--shard" else ()), *words)
        assert (ended.returncode, sentence in ended.stderr) == (2, True), ended.stderr
    assert "one of the two" in command().stderr


def _table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return [head, *(_rounded(row) for row in rows)]


def _rounded(row: list[str]) -> list[str]:
    def cell(text: str) -> str:
        try:
            return f"{float(text):.9g}"
        except ValueError:
            return text

    return [cell(text) for text in row]


def test_processes_find_the_same(dump: Path, tmp_path: Path) -> None:
    one, two = aclnn.compare(dump), aclnn.compare(dump, work=SharedWork(jobs=2))
    for name, found in (("one", one), ("two", two)):
        found.save(tmp_path / f"{name}.csv")
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()


def test_a_third_party_stands_beside(dump: Path, tmp_path: Path) -> None:
    found = aclnn.compare(dump, also=dump)
    assert all(r.also is not None and r.also.third.rmse == r.measured.rmse for r in found.compared if r.measured)
    (path,) = found.save(tmp_path / "r.csv")
    with path.open(newline="") as file:
        assert all(row["also_rmse"] == row["rmse"] for row in csv.DictReader(file))


def test_progress_is_told_to_the_end_and_wrong_calls_as_they_are_found(dump: Path) -> None:
    seen: list[tuple[str, float]] = []
    aclnn.compare(dump, work=SharedWork(told=lambda judgement, part: seen.append((judgement.unit, part))))
    assert len(seen) == 8
    assert [part for _, part in seen] == sorted(part for _, part in seen)
    assert seen[-1][1] == pytest.approx(1.0)


def test_both_languages_and_no_line_too_long(dump: Path) -> None:
    found = aclnn.compare(dump)
    assert isinstance(found, DumpComparison)
    assert f"最先出错：{WRONG}" in terminal.as_text(found, "zh")
    assert max(map(len, terminal.as_text(found).splitlines())) <= 100
    text = page.render(found)
    assert text.count('<tr data-state="fail">') == 1
    assert text.count('<tr data-state="pass">') == 7
    assert 'id="search"' in text
    assert "仅在通道2" in text
    assert "only in channel 2" in text


def test_a_missing_package_costs_one_line_and_not_the_verdict(dump: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['openpyxl'] = None\nfrom aclnn.cli import main\n"
        f"sys.argv = ['aclnn', 'compare', '-tp', {str(dump)!r}, '-o', {str(tmp_path / 'r.xlsx')!r}, "
        f"'-o', {str(tmp_path / 'r.json')!r}]\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"first wrong: {WRONG}" in ended.stdout
    assert "needs openpyxl" in ended.stderr
    assert (tmp_path / "r.json").exists()


@pytest.mark.long
def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    sizes = {}
    for calls in (20, 200):
        write_large(tmp_path / str(calls), calls, 64)
        code = (
            "import sys, aclnn\nfrom tests.peak import peak_kilobytes\n"
            f"found = aclnn.compare({str(tmp_path / str(calls))!r})\n"
            "found.save(sys.argv[1])\n"
            "print(len(found.calls), len(found.wrong), peak_kilobytes() // 1024)"
        )
        ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "r.html")], capture_output=True, text=True)
        count, wrong, sizes[calls] = map(int, ended.stdout.split())
        assert (count, wrong) == (calls, 3), ended.stderr
    assert sizes[200] < sizes[20] + 150  # MB


def test_sums_of_16_bits_are_wrong_unless_they_are_allowed(tmp_path: Path) -> None:
    """The strict verdict stands, with its reason; what is allowed is still held to the same bound."""
    run, wrong, _ = FAULTS["conv_bfloat16_partial_sums"]()
    w = DumpWriter(tmp_path)
    given = [run.given[name] for name in ("input", "weight")]
    y = w.draw(*run.given["gradOutput"].shape, dtype=given[0].dtype)
    w.function("Functional.conv2d.0", [*given, w.draw(6, dtype=given[0].dtype)], y, run.given["gradOutput"],
               [wrong[name] for name in ("gradInput", "gradWeight", "gradBias")])  # fmt: skip
    del w.forwards["Functional.conv2d.0.forward"]["output"][0]["data_name"]
    strict = command("-tp", w.finish())
    assert strict.returncode == 1
    assert "the sums were added up in bfloat16 instead of float32, tap by tap" in strict.stdout
    allowed = command("-tp", tmp_path, "--narrow-sums")
    assert allowed.returncode == 0, allowed.stdout
    assert "right as sums of bfloat16, added up" in allowed.stdout
    off = wrong["gradInput"].copy()
    off[0, 2] = (off[0, 2].astype(np.float32) * 1.02).astype(off.dtype)
    save(tmp_path / "dump_tensor_data" / "Functional.conv2d.0.backward.output.0.pt", off)
    found = command("-tp", tmp_path, "--narrow-sums")
    assert found.returncode == 1
    assert "gradInput" in found.stdout
