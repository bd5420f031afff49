"""A run from beginning to end, on the smallest shape; every named shape makes its calls."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bench_busy, machine, pages, rows, run, table
from benchmarks.shapes import COLUMNS, FURTHER, OPERATORS, convolution_sizes, shapes_of

from aclnn.base.dtype import BFLOAT16, FLOAT32
from tests.cli.test_cli import aclnn

QUICK = ["--isa", "native", "--seconds", "0.01", "--patience", "0", "--processes", "1"]


def test_a_run_writes_rows_into_the_folder_of_its_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "IN_TURN", ("aclnn",))
    monkeypatch.setattr(run, "has", lambda package: package == "matplotlib")
    options = ["--columns", "given", "--only", "small", "--dtypes", "float32", "--output", str(tmp_path)]
    assert run.main(["elu", *options, *QUICK]) == 0
    (folder,) = tmp_path.iterdir()
    assert folder.name == f"{machine.slug()}-{machine.level()}"
    (row,) = rows.read(folder)
    assert (row["operator"], row["shape"], row["dtype"], row["column"]) == ("elu", "small", "float32", "given")
    assert row["process"] == 0
    p20, p50, p80, readings = row["times"]["aclnn"]
    assert 0 < p20 <= p50 <= p80
    assert readings >= 11
    assert "limit" not in row  # it stays in a cache
    assert "1 of 1, time left unknown" in (said := capsys.readouterr().err)
    assert "elu, given, process 1" in said
    assert [p.name for p in folder.iterdir()] == ["elu-given.jsonl"]  # nothing beside PyTorch is nothing to plot


def test_a_row_of_products_has_the_limit_that_took_turns_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "IN_TURN", ("aclnn",))
    monkeypatch.setattr(run, "has", lambda package: False)
    options = ["--columns", "given", "--only", "seq200-batch1-256", "--dtypes", "float32", "--output", str(tmp_path)]
    assert run.main(["lstm", *options, *QUICK]) == 0
    (folder,) = tmp_path.iterdir()
    (row,) = rows.read(folder)
    assert row["limit"] == 2 * 2048**3
    assert row["times"]["limit"][1] > 0
    assert list(row["times"]) == ["aclnn", "limit"]


@pytest.mark.parametrize(("has_instructions", "beside"), [(True, "bfloat16"), (False, "float32")])
def test_bfloat16_is_measured_beside_what_the_processor_multiplies(
    has_instructions: bool, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(machine, "has", lambda package: True)
    monkeypatch.setattr(machine, "multiplies_bfloat16", lambda: has_instructions)
    monkeypatch.setattr(machine, "_product", asked.append)
    machine.limit({"flops": 1e12}, BFLOAT16)
    assert asked == [beside]


def test_the_command_runs_in_a_checkout_only(tmp_path: Path) -> None:
    ended = aclnn("bench", "elu", cwd=tmp_path)
    assert ended.returncode == 2
    assert "bench runs in a checkout of aclnn-cpu" in ended.stderr
    ended = aclnn("bench", "gelu", cwd=pages.ROOT)
    assert ended.returncode == 2
    assert "there is no benchmark of gelu" in ended.stderr


def test_busy_loops_run_beside_both_sides_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    begun: list[Any] = []
    popen = bench_busy.subprocess.Popen

    def counted(command: list[str]) -> Any:
        begun.append(popen(command))
        return begun[-1]

    for name, value in {"ROUNDS": 1, "SECONDS": 0.02, "SETTLE": 0.0}.items():
        monkeypatch.setattr(bench_busy, name, value)
    monkeypatch.setattr(bench_busy.subprocess, "Popen", counted)
    row = bench_busy.once({"x": [1, 4, 6, 6], "w": [4, 4, 3, 3], "padding": 1})
    assert len(begun) == len(os.sched_getaffinity(0))
    assert all(loop.returncode is not None for loop in begun)
    assert set(row["slower"]) == {"aclnn", "torch"}
    assert min(row["slower"].values()) > 0
    assert table.slowdown({"slower": {"aclnn": 3.0, "torch": 4.0}}) == "0.75"


def test_a_name_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["gelu"])
    assert "there is no benchmark of gelu; choose from elu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "kind"), [("--isa", "limit"), ("--columns", "column"), ("--only", "shape"), ("--dtypes", "dtype")]
)
def test_what_is_not_there_is_refused_before_anything_is_measured(
    option: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run.main(["elu", option, "nosuch"])
    assert f"there is no {kind} nosuch; choose from " in capsys.readouterr().err


def test_further_providers_have_processes_of_their_own() -> None:
    given = run.parsed([])
    turns = [command[-1] for command in run.commands("elu", "given", given)]
    assert turns[:5] == ["aclnn,torch"] * 5
    assert set(turns[5:]) <= {"torch.compile", "jax"}
    assert [command[-1] for command in run.commands("elu", "fresh", given)] == ["aclnn,torch"] * 5


def test_a_quick_run_has_fewer_processes_dtypes_and_columns() -> None:
    given = run.parsed(["--quick", "--isa", "avx2"])
    coming = list(run.planned(given))
    assert {process[2] for process in coming} == {*COLUMNS, "once"} - {"growth", "memory"}
    assert "golden" not in {process[1] for process in coming}
    in_16_bits = {process[1:3] for process in coming if "float32" not in process[4]}
    assert in_16_bits == {("elu", "given"), ("lstm_cell", "given")}
    assert [sum(process[1:3] == ("elu", column) for process in coming) for column in ("given", "out")] == [5, 2]
    assert all("--no-limit" in process[4] for process in coming)
    without_long_ones = {process[2] for process in coming if "--longest" in process[4]}
    assert without_long_ones == {"fresh", "out", "torch", "c"}
    assert len(coming) < len(list(run.planned(run.parsed(["--isa", "avx2"])))) / 2
    assert run.parsed(["--quick", "--processes", "2"]).processes == 2


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that was cut off is made again, those before it are not, and no row is there twice."""
    started: list[list[str]] = []

    def printed(command: list[str], environment: dict[str, str], failed: list[str]) -> Iterator[rows.Row]:
        started.append(command)
        yield machine.facts() | {"column": "given", "threads": 1}
        for shape in ("one", "two"):
            if len(started) == 2 and shape == "two":
                raise KeyboardInterrupt
            times = {"aclnn": [len(started)] * 3}
            yield {"operator": "elu", "shape": shape, "dtype": "float32", "load": 0.0, "times": times}

    monkeypatch.setattr(run, "printed", printed)
    monkeypatch.setattr(run, "has", lambda package: False)
    asked = ["elu", "--isa", "native", "--columns", "given", "--processes", "3", "--output", str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        run.main(asked)
    assert run.main(["--resume", "--output", str(tmp_path)]) == 0
    (folder,) = [p for p in tmp_path.iterdir() if p.is_dir()]
    found = [(row["process"], row["shape"], row["times"]["aclnn"][0]) for row in rows.read(folder)]
    assert found == [(p, shape, n) for p, n in ((0, 1), (1, 3), (2, 4)) for shape in ("one", "two")]
    assert not (tmp_path / run.UNFINISHED).exists()


def test_the_time_left_is_told_from_what_has_ended() -> None:
    elu, cell = ("native", "elu", "given", 0, ["elu"]), ("native", "lstm_cell", "given", 0, ["cell"])
    assert run.time_left([elu, cell], {("elu", "given"): [60.0, 120.0]}) == "about 3 minutes left"
    assert run.time_left([cell], {("elu", "given"): [60.0], ("lstm_cell", "given"): [600.0]}) == "about 10 minutes left"


@pytest.mark.parametrize(
    ("level", "isas"), [("avx512", ["avx2", "native"]), ("avx2", ["native"]), ("neon", ["native"])]
)
def test_both_instruction_sets_where_there_are_two(
    level: str, isas: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "level", lambda: level)
    assert run.parsed([]).isa == isas
    with pytest.raises(SystemExit):
        run.parsed(["--isa", "avx3"])


def test_a_process_is_held_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []

    def printed(command: list[str], environment: dict[str, str], failed: list[str]) -> list[rows.Row]:
        seen.append(environment)
        return []

    monkeypatch.setattr(run, "printed", printed)
    given = run.parsed(["elu", "--isa", "avx2,native", "--processes", "1", "--columns", "fresh"])
    run.collect(list(run.planned(given)), {isa: tmp_path / isa for isa in given.isa})
    limited, native = seen
    assert (limited["ACLNN_MAX_ISA"], limited["ATEN_CPU_CAPABILITY"]) == ("avx2", "avx2")
    assert limited["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert "ATEN_CPU_CAPABILITY" not in native


def test_a_process_that_fails_is_told_and_ends_no_other(tmp_path: Path) -> None:
    def command(code: str) -> list[str]:
        return [sys.executable, "-c", code]

    row = {"operator": "elu", "shape": "a", "dtype": "float32"}
    processes = [("native", "elu", "fresh", 0, command("raise SystemExit(7)"))]
    processes += [("native", "elu", "fresh", 1, command(f"print({json.dumps(json.dumps(row))})"))]
    (failed,) = run.collect(processes, {"native": tmp_path / "p-avx2"})
    assert "ended with 7" in failed
    assert len(rows.read(tmp_path / "p-avx2")) == 1


def test_memory_has_a_process_per_shape_and_provider() -> None:
    found = list(run.commands("elu", "memory", run.parsed(["--only", "large"])))
    assert found[0][-3:] == ["large", "--providers", "aclnn"]
    assert len(found) <= 2


@pytest.mark.parametrize(("torch", "left"), [(0.1, False), (0.3, False), (0.9, True), (10.0, True)])
def test_a_provider_far_behind_is_left_alone_afterwards(torch: float, left: bool) -> None:
    assert run.far_behind({"times": {"aclnn": [0, 0.1, 0, 1], "torch": [0, torch, 0, 1]}}) is left
    assert not run.far_behind({"times": {"aclnn": [0, 0.1, 0, 1], "torch": [0, torch, 0, 1]}, "load": 1.5})
    assert not run.far_behind({"process": 0})


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_shape_says_its_work(operator: str) -> None:
    bench: Any = importlib.import_module(f"benchmarks.bench_{operator}")
    for growth in (False, True):
        for shape in shapes_of(operator, growth).values():
            assert all(amount > 0 for amount in bench.work(shape, FLOAT32).values())


def test_sizes_of_a_transposed_convolution() -> None:
    sizes, _ = convolution_sizes(shapes_of("convolution")["decoder-transposed"])
    assert sizes[0] == [4, 128, 32, 32]


@pytest.mark.torch
@pytest.mark.parametrize("name", shapes_of("calls"))
def test_every_tiny_call_runs(name: str) -> None:
    calls: Any = importlib.import_module("benchmarks.bench_calls")
    for maker in calls.makers(shapes_of("calls")[name], FLOAT32, "fresh").values():
        maker()()


@pytest.mark.torch
def test_a_training_step_learns() -> None:
    training: Any = importlib.import_module("benchmarks.bench_training")
    for name, maker in training.makers({"batch": 8}, FLOAT32, "fresh").items():
        step = maker()
        losses = [step() for _ in range(5)]  # of one batch, again and again
        assert losses == sorted(losses, reverse=True), name
        assert losses[-1] < 0.95 * losses[0], name


def test_comparing_files_has_a_time_and_a_peak() -> None:
    golden: Any = importlib.import_module("benchmarks.bench_golden")
    found = golden.once({"size": [2, 8, 8]})
    assert found["seconds"] >= 0
    assert found["peak"] > 0


def test_rows_in_the_repository_are_of_shapes_that_exist() -> None:
    for file in pages.RESULTS.glob("*/*.jsonl"):
        benchmark, column = file.stem.rsplit("-", 1)
        assert column in FURTHER.get(benchmark, COLUMNS)
        names = shapes_of(benchmark, column == "growth")
        found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert all(row["shape"] in names for row in found if "operator" in row)
