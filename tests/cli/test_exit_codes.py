"""What the command answers with: 0 right, 1 mismatch, 2 bad input, 3 our own failure, 130 interrupted; no traceback."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aclnn import cli
from aclnn.base import exit_codes
from aclnn.cases import batch
from aclnn.cli import bench, compare, describe, environment, flags, run
from aclnn.golden.judge.standards import STANDARDS
from aclnn.golden.result import ERROR, FAIL, PASS, Comparison, OutputReport
from tests.cli.test_cli import aclnn
from tests.golden.planting import planted

PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom aclnn.cli import main; main()"
COMMANDS = {
    "ops": (describe, "print_table", []),
    "describe": (describe.tables, "prototype", ["aclnnElu"]),
    "run": (run, "_run_operator", ["aclnnElu"]),
    "compare": (compare, "compare_", ["-tp", "x.npz"]),
    "env": (environment, "facts", []),
    "bench": (bench.importlib, "import_module", []),
    "cxx": (cli, "_command", ["x.cpp"]),
    "flags": (flags, "built_prefix", ["--prefix"]),
}


def fail(error: BaseException) -> object:
    def failing(*_: object, **__: object) -> None:
        raise error

    return failing


@pytest.mark.parametrize("command", COMMANDS)
def test_whatever_breaks_is_a_sentence(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, arguments = COMMANDS[command]
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.delenv("ACLNN_VERBOSE", raising=False)
    monkeypatch.setattr(place, name, fail(ZeroDivisionError("by \x1b[31m")))
    ended = aclnn(command, *arguments)
    assert ended.returncode == exit_codes.OURS
    assert "please report it: ZeroDivisionError: by \\x1b[31m.\n" in ended.stderr
    assert "Traceback" not in ended.stderr
    monkeypatch.setattr(place, name, fail(KeyboardInterrupt()))
    ended = aclnn(command, *arguments)
    assert (ended.returncode, ended.stderr.count("Traceback")) == (exit_codes.INTERRUPTED, 0)


def test_whoever_asks_sees_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_VERBOSE", "1")
    monkeypatch.setattr(environment, "facts", fail(ZeroDivisionError("by 0")))
    ended = aclnn("env")
    assert ended.returncode == exit_codes.OURS
    assert "Traceback" in ended.stderr


@pytest.mark.parametrize("arguments", [["\x1b[31m"], ["run"], ["run", "--\x1b[2J"], ["ops", "--lang", "\x1b"]])
def test_a_wrong_use_is_shown_and_not_obeyed(arguments: list[str]) -> None:
    ended = aclnn(*arguments)
    assert ended.returncode == exit_codes.BAD_INPUT
    assert "Usage: " in ended.stderr
    assert "\x1b" not in ended.stderr


def comparison(*reports: tuple[str, bool | None, int]) -> Comparison:
    made = [
        OutputReport(f"c{i}", "x", status, sound=sound, code=code) for i, (status, sound, code) in enumerate(reports)
    ]
    return Comparison(next(iter(STANDARDS.values())), made)


def test_a_mismatch_that_was_found_stays_found() -> None:
    wrong, refused, broken = (FAIL, False, 0), (ERROR, None, 161002), (ERROR, None, 561000)
    assert comparison(wrong, refused, broken).exit_code() == exit_codes.MISMATCH
    assert comparison(wrong, refused, broken).exit_code(strict=True) == exit_codes.MISMATCH
    assert comparison((PASS, True, 0), refused, broken).exit_code() == exit_codes.OURS
    assert comparison((PASS, True, 0), refused).exit_code() == exit_codes.BAD_INPUT
    assert comparison().exit_code() == exit_codes.BAD_INPUT


def test_one_case_that_breaks_does_not_take_the_others_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from aclnn.golden import compare as comparing

    case = planted("aclnnEluBackward")
    for name in "abc":
        case.save(tmp_path / f"{name}.npz")
    original = comparing._expected
    breaks = fail(IndexError("oops"))
    monkeypatch.setattr(comparing, "_expected", lambda s: breaks(s) if s.name == "b.npz" else original(s))  # type: ignore[operator]
    ended = aclnn("compare", "-tp", str(tmp_path))
    assert ended.returncode == exit_codes.OURS
    assert "IndexError: oops" in ended.stdout
    case.save(tmp_path / "c.npz", gradInput=case.arrays["gradInput"] + 1)
    assert aclnn("compare", "-tp", str(tmp_path)).returncode == exit_codes.MISMATCH


def test_one_row_that_breaks_does_not_take_the_others_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("op,case\naclnnElu,one\naclnnElu,two\naclnnElu,three\n")
    from aclnn.cases import trial

    original, seen = trial.make_plan, []

    def sometimes(*given: object) -> object:
        seen.append(given)
        return original(*given) if len(seen) != 2 else fail(IndexError("oops"))()  # type: ignore[arg-type, operator]

    monkeypatch.setattr(trial, "make_plan", sometimes)
    ended = aclnn("run", str(tmp_path / "t.csv"))
    assert ended.returncode == exit_codes.OURS
    assert "2 ran, not checked; 1 broken: our own failure" in ended.stdout


def test_a_run_that_breaks_off_shows_what_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("op,case\naclnnElu,one\naclnnElu,two\n")
    original = batch.run_row

    def second_breaks(row: batch.Row, *rest: object) -> batch.Result:
        found = original(row, *rest)  # type: ignore[arg-type]
        return found if row.name == "one" else fail(OSError("no pool"))()  # type: ignore[operator]

    monkeypatch.setattr(batch, "run_row", second_breaks)
    ended = aclnn("run", str(tmp_path / "t.csv"))
    assert ended.returncode == exit_codes.OURS
    assert "1 ran, not checked" in ended.stdout
    assert "OSError: no pool" in ended.stderr


def wrong_case(folder: Path) -> Path:
    case = planted("aclnnEluBackward")
    case.save(folder / "c.npz", gradInput=case.arrays["gradInput"] + 1)
    return folder / "c.npz"


def test_a_reader_that_goes_away_changes_no_answer(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "compare", "-tp", str(wrong_case(tmp_path))]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (exit_codes.MISMATCH, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_an_output_without_room_is_said() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-c", PROGRAM, "env"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == exit_codes.OURS
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_terminal_of_few_letters_shows_numbers() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", PROGRAM, "describe", "aclnnElu", "--lang", "zh"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_formula_stays_a_formula_where_letters_are_few(tmp_path: Path) -> None:
    """The root sign is also the tick of a table; a bound of "yesK" is none."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "ACLNN_LANG": "en"}
    assert aclnn("run", "aclnnElu", "-o", str(tmp_path)).returncode == 0
    command = [sys.executable, "-c", PROGRAM, "compare", "-tp", str(tmp_path), "--standard", "sound"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "(8 + sqrt(K))*u*sum|terms|" in " ".join(ended.stdout.split())
    assert "\\u" not in ended.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_an_interrupt_before_the_command_begins_is_no_traceback() -> None:
    """Most of the first third of a second goes into imports."""
    program = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'aclnn.cli.screen' and sys.meta_path.remove(self) is None:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "from aclnn.cli import main; sys.meta_path.insert(0, Interrupts())\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", program, "ops"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (exit_codes.INTERRUPTED, "aclnn: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize(("ignored", "code"), [(False, exit_codes.INTERRUPTED), (True, 0)])
def test_an_interrupt_ends_the_command_unless_its_parent_has_it_ignored(ignored: bool, code: int) -> None:
    """As with nohup or `&`: whoever starts a command with SIGINT ignored wants it to go on."""
    handler = "SIG_IGN" if ignored else "default_int_handler"
    program = (
        f"import os, signal; signal.signal(signal.SIGINT, signal.{handler})\n"
        "from aclnn.cli import environment, main; facts = environment.facts\n"
        "environment.facts = lambda: (os.kill(os.getpid(), signal.SIGINT), facts())[1]\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", program, "env"], capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr


def test_only_the_screen_prints() -> None:
    for path in sorted(Path(cli.__file__).parent.glob("*.py")):
        called = {
            ast.unparse(n.func)
            for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(n, ast.Call)
        }
        names = {"print", "typer.echo", "sys.stdout.write", "sys.stderr.write", "typer.secho"}
        assert path.name == "screen.py" or not called & names, path.name


def test_numpy_says_nothing_of_its_own(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([np.nan, np.inf, 1e38], np.float32))
    np.save(tmp_path / "y.npy", np.array([1, -np.inf, -1e38], np.float32))
    ended = aclnn("compare", "-tp", str(tmp_path / "x.npy"), "-gp", str(tmp_path / "y.npy"))
    assert (ended.returncode, ended.stderr) == (exit_codes.MISMATCH, "")
