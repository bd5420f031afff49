"""What a terminal shows at several widths, in both languages and in any encoding: a real one, whose end we hold."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from aclnn import ops
from aclnn.base import chinese
from aclnn.base.layout import pieces
from aclnn.cli.app import app
from tests.cli.test_cli import aclnn

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

ROOT = Path(__file__).resolve().parents[2]
QUICK = [(80, "en"), (80, "zh")]
SLOW = [(width, lang) for width in (60, 100, 140) for lang in ("en", "zh")]
SCREENS = [*QUICK, *(pytest.param(*screen, marks=pytest.mark.long) for screen in SLOW)]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results to be compared: one right, one wrong."""
    folder = tmp_path_factory.mktemp("results")
    assert aclnn("run", "aclnnConvolutionBackward", "-o", str(folder)).returncode == 0
    np.save(folder / "target.npy", np.arange(6, dtype=np.float32))
    np.save(folder / "golden.npy", np.ones(6, np.float32))
    return folder


COMMANDS = [
    ["ops"],
    ["describe", "convolution_backward"],
    ["compare", "--help"],
    ["describe", "nope"],
    ["env"],
    ["run", "{root}/examples/ci/cases.csv", "--check"],
    ["compare", "-tp", "{out}/convolution_backward.npz"],
    ["compare", "-tp", "{out}/target.npy", "-gp", "{out}/golden.npy"],
]


def shown(width: int, lang: str, commands: list[list[str]]) -> list[str]:
    """The lines that commands print on a terminal so wide, one process for all of them."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    program = (
        "import sys\nfrom aclnn.cli import main\n"
        f"for words in {commands!r}:\n    sys.argv = ['aclnn', *words]\n"
        "    try: main()\n    except SystemExit: pass\n    print('=====')\n"
    )
    environment = {**os.environ, "ACLNN_LANG": lang, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        environment.pop(name, None)
    command = [sys.executable, "-c", program]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # Linux says so when nobody has the other end
            break
        if not more:
            break
        text += more
    os.close(ours)
    assert child.wait(60) == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    return [line.split("\r")[-1] for line in plain.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize(("width", "lang"), SCREENS)
def test_nothing_is_cut_and_no_line_is_too_long(width: int, lang: str, out: Path) -> None:
    commands = [[word.format(root=ROOT, out=out) for word in command] for command in COMMANDS]
    lines = shown(width, lang, commands)
    text = "\n".join(lines)
    assert "Traceback" not in text
    assert text.count("=====") == len(COMMANDS)
    for line in lines:
        assert cell_len(line) <= width or len(pieces(line.strip())) == 1, line  # a path is longer than any line
        assert not line.endswith("…")
    words = {piece.strip() for line in lines for piece in pieces(line)}
    for op in ops.all_ops():
        assert {op.name, f"aclnn.{op.python}"} <= words
    for arg in ops.find("convolution_backward").args:
        assert arg.name in words
    assert ("没有算子" in text.replace("\n", "")) == (lang == "zh")


@pytest.mark.long
def test_tables_are_tables_where_there_is_room() -> None:
    wide = shown(140, "en", [["ops"]])
    assert (
        "aclnnEluBackward                aclnn.elu_backward                   Gradient of the ELU activation." in wide
    )
    narrow = shown(60, "en", [["ops"]])
    assert narrow[:3] == [
        "aclnnEluBackward",
        "  Python: aclnn.elu_backward",
        "  what it is: Gradient of the ELU activation.",
    ]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("encoding", ["gbk", "ascii", pytest.param("latin-1", marks=pytest.mark.long)])
def test_no_encoding_is_too_poor(encoding: str, lang: str) -> None:
    environment = {**os.environ, "ACLNN_LANG": lang, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "aclnn", "describe", "aclnnEluBackward"]
    ended = subprocess.run(command, capture_output=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, b"")
    text = ended.stdout.decode(encoding)
    assert ("参数说明" in text) == (encoding == "gbk" and lang == "zh")
    assert "\\u" not in text
    assert ("√" if encoding == "gbk" else "yes") in text
    assert ("≥" if encoding == "gbk" else ">=") in text


def test_no_locale_at_all() -> None:
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-m", "aclnn", "describe", "aclnnEluBackward"]
    ended = subprocess.run(command, capture_output=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_table_that_a_spreadsheet_saved_as_gbk_is_read(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    table.write_bytes("op,case,sizes\naclnnEluBackward,中文用例,shape=3\n".encode("gbk"))
    ended = aclnn("run", str(table))
    assert ended.returncode == 0
    assert "中文用例" in ended.stdout
    table.write_bytes("op,case\naclnnEluBackward,中文\n".encode("utf-16"))
    ended = aclnn("run", str(table))
    assert ended.returncode == 2
    assert "is neither UTF-8 nor GBK; save it as UTF-8." in ended.stderr


# Language


def test_every_help_is_there_in_chinese() -> None:
    for command in (None, *app.registered_commands):
        words = [command.name] if command and command.name else []
        text = aclnn(*words, "--lang", "zh", "--help").stdout if words != ["cxx"] and words != ["flags"] else ""
        prose = [line for line in text.splitlines() if re.search("[a-z] [a-z]+ [a-z]", line) and "aclnn " not in line]
        assert prose == []


def test_the_command_line_follows_the_variable_and_the_option_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_LANG", "zh")
    assert "没有算子" in aclnn("describe", "nope").stderr
    assert "激活函数" in aclnn("ops").stdout
    assert "激活函数" not in aclnn("ops", "--lang", "en").stdout
    assert "用法：" in aclnn("run").stderr
    assert "25个通过" not in aclnn("ops").stdout
    monkeypatch.setenv("ACLNN_LANG", "en")
    assert "激活函数" in aclnn("--lang", "zh", "ops").stdout
    monkeypatch.setenv("ACLNN_LANG", "klingon")
    ended = aclnn("ops")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "ACLNN_LANG is 'klingon'; it must be en or zh." in ended.stderr


def test_words_that_must_not_be_translated_stay() -> None:
    assert chinese.translated("aclnnEluBackward") == "aclnnEluBackward"


def test_python_m_aclnn_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "aclnn", "ops"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "aclnn.elu_backward" in ended.stdout


@pytest.mark.parametrize(
    ("begun", "becomes"),
    [
        ("run elu --product A", "A2 A3"),
        ("compare --standard m", "mixed mere-mare"),
        pytest.param("run elu --engine f", "fast", marks=pytest.mark.long),
        pytest.param("compare --op aclnnConvT", "aclnnConvTbcBackward aclnnConvTbc", marks=pytest.mark.long),
        pytest.param("ops --lang z", "zh", marks=pytest.mark.long),
    ],
)
def test_a_shell_completes_values(begun: str, becomes: str) -> None:
    words = {"COMP_WORDS": f"aclnn {begun}", "COMP_CWORD": str(len(begun.split())), "_ACLNN_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "from aclnn.cli.app import app; app(prog_name='aclnn')"]
    ended = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True)
    assert ended.stdout.split() == becomes.split()
