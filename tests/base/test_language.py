"""One place decides the language; refusals have their sentence in both."""

from __future__ import annotations

import ast
import io
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn import ops
from aclnn.base import chinese, language
from aclnn.base.status import AclnnError
from aclnn.contract.model import Op
from aclnn.runtime.plan import make_plan
from tests.every.draw import drawn

SOURCE = Path(aclnn.__file__).parent
VARIABLES = ("ACLNN_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


def chosen(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return language.current()


@pytest.mark.parametrize(
    ("environment", "lang"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "ACLNN_LANG": "en"}, "en"),
        ({"LANG": "C", "ACLNN_LANG": "zh-CN"}, "zh"),
        ({"LANG": "zha.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "ACLNN_LANG": "fr"}, "zh"),
    ],
)
def test_the_variable_beats_the_locale(environment: dict, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getlocale", lambda: (None, None))
    assert chosen(monkeypatch, **environment) == lang


def test_windows_names_the_locale_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getlocale", lambda: ("Chinese (Simplified)_China", "936"))
    assert chosen(monkeypatch) == "zh"


def test_the_locale_is_not_followed_where_chinese_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "latin-1"))
    assert chosen(monkeypatch, LANG="zh_CN") == "en"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "gbk"))
    assert chosen(monkeypatch, LANG="zh_CN.GBK") == "zh"


def test_what_is_chosen_beats_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_LANG", "zh")
    language.choose("en")
    assert language.current() == "en"
    assert language.current("zh") == "zh"
    with pytest.raises(AclnnError, match="--lang is 'fr'; it must be en or zh"):
        language.choose("fr")


def test_an_error_keeps_its_english_and_has_its_chinese() -> None:
    with pytest.raises(AclnnError) as refused:
        aclnn.elu_backward([1.0], 1.0, 1.0, 1.0, True, [1.0])
    error = pickle.loads(pickle.dumps(refused.value))
    assert error.message.startswith("aclnnEluBackward: gradOutput is a list; it must be a numpy array")
    assert error.message_zh.startswith("aclnnEluBackward：gradOutput是list；应为numpy数组")
    assert error.said("zh").startswith("[161002 ACLNN_ERR_PARAM_INVALID] aclnnEluBackward：")


def test_a_rule_says_both_itself() -> None:
    y = np.ones(3)
    with pytest.raises(AclnnError) as refused:
        aclnn.elu_backward(y, 1.0, 1.0, 1.0, True, y)
    assert "gradOutput的数据类型是float64" in refused.value.message_zh


def test_what_nobody_translated_stays() -> None:
    assert chinese.translated("a sentence of someone else") == "a sentence of someone else"
    assert chinese.translated("x" * 10**6 + ", line 1: y") == "x" * 10**6 + ", line 1: y"


# Every sentence in the sources

CALLS = {
    *("invalid", "AclnnError", "parameter", "inner", "_cannot", "MissingPackageError", "Refusal"),
    *("complain", "tell", "warning"),
}
KERNELS = SOURCE / "kernels"


def sentences() -> Iterator[tuple[str, str]]:
    for path in sorted(set(SOURCE.rglob("*.py")) - set(KERNELS.rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                texts[node.targets[0].id, node.lineno] = node.value
        for node in ast.walk(tree):
            says_both = isinstance(node, ast.Call) and any(k.arg == "message_zh" for k in node.keywords)
            if isinstance(node, ast.Call) and _name(node.func) in CALLS and not says_both:
                for said in _texts(node, texts):
                    end = "." if _name(node.func) in ("parameter", "inner") and not said.endswith(".") else ""
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", said.removeprefix("aclnn: ") + end


def reasons() -> Iterator[tuple[str, str]]:
    """Why a kernel does not take a call: what it refuses or raises with, and what its questions answer."""
    for path in sorted(KERNELS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            said: list[ast.expr] = []
            if isinstance(node, ast.Call) and (_name(node.func) == "Refusal" or _name(node.func).endswith("Error")):
                said = node.args
            elif isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) == "str | None":
                said = [part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.JoinedStr)]
                inside = {id(piece) for part in said if isinstance(part, ast.JoinedStr) for piece in ast.walk(part)}
                whole = [part for part in said if isinstance(part, ast.JoinedStr) or id(part) not in inside]
                said = [part for part in whole if _filled(part) != ast.get_docstring(node, clean=False)]
            for text in filter(None, map(_filled, said)):
                if " " in text.strip():
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", text


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _texts(call: ast.Call, texts: dict) -> Iterator[str]:
    """The sentences among the arguments of a call, with an example in every blank."""
    for argument in call.args:
        if isinstance(argument, ast.Name):  # the last text of that name above the call
            lines = [line for name, line in texts if name == argument.id and line < call.lineno]
            argument = texts[argument.id, max(lines)] if lines and max(lines) > call.lineno - 6 else argument
        said = _filled(argument)
        if said is not None and " " in said.strip():
            yield said


def _filled(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(part.value if isinstance(part, ast.Constant) else "XX" for part in node.values)


# Put together from pieces which have entries of their own or come from others; what they say whole is in the catalogue.
JOINED = {
    "XX is XX; it must be XX.",
    "XX",
    "XX: XX",
    "XX: XX.",
    "XX overlaps XX in memory; the two XX.",
    "out XX; it must be a tuple of XX (XX).",
    "the XX XX; XX has XX outputs: XX.",
    "XX: XX; its outputs are XX.",
    "there is no operator XX; XX XX.",
    "of the parts XXXX no report is there.",
    "stopped after XX of XX rowsXX",
    "removed from XXXX.",
    "XX: XX of the allowed error, XX",
    "XX …",
    "XX\n\nXX\n",
    "the C++ library does not build: XX\nXX",
}


def test_every_refusal_and_every_sentence_of_the_command_line_is_there_in_chinese() -> None:
    said = [(where, text) for where, text in sentences() if text not in JOINED]
    assert len(said) > 150
    assert [(where, text) for where, text in said if not is_known(text)] == []


def test_every_reason_of_a_kernel_is_there_in_chinese() -> None:
    said = list(reasons())
    assert len(said) > 30
    assert [(where, text) for where, text in said if not is_known(text)] == []


@pytest.mark.parametrize("engine", ["auto", "fast"])
@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda op: op.name)
def test_what_kernels_answer_is_there_in_chinese(op: Op, engine: str) -> None:
    """Whoever found a way to refuse that no reader of sources sees is found by the calls themselves."""
    for case in [*ops.cases(op), *drawn(op, 0, 40)]:
        with suppress(AclnnError):  # nobody of this engine takes it
            refused = make_plan(op, case.call, engine, 2).refused
            assert [why for _, why in refused if not is_known(why)] == []


def test_a_plan_is_explained_in_the_language_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((2, 3))
    plan = aclnn.elu_backward.plan(x, 1.0, 1.0, 1.0, True, x, product="cpu")
    monkeypatch.setenv("ACLNN_LANG", "zh")
    assert plan.explain().splitlines() == [
        "aclnnEluBackward（cpu）：内核numpy，workspace为0字节",
        "  numba拒绝：gradOutput为float64，gradInput为float64；只支持同为float32、float16或bfloat16",
    ]
    assert (
        plan.explain("en").splitlines()[1].startswith("  numba refused: gradOutput is float64 and gradInput float64;")
    )
    assert plan.refused[0][1].startswith("gradOutput is float64")


def test_an_engine_that_refuses_says_the_reasons_of_its_kernels_in_chinese_too() -> None:
    x = np.ones((2, 3))
    with pytest.raises(AclnnError) as refused:
        aclnn.elu_backward(x, 1.0, 1.0, 1.0, True, x, product="cpu", engine="fast")
    assert refused.value.message_zh == (
        "aclnnEluBackward：引擎'fast'无法执行此调用"
        "（numba：gradOutput为float64，gradInput为float64；只支持同为float32、float16或bfloat16）。"
    )


def is_known(text: str) -> bool:
    """With what stands before it, which may be the name of an operator, or without."""
    return any(chinese.translated(one) != one for one in (text, text.removeprefix("XX: ")))


def test_the_catalogue_has_as_many_blanks_in_both_languages() -> None:
    for english, said in chinese.sentences().items():
        blanks = len(re.findall(r"\{\*?\}", english))
        assert len(re.findall(r"\{\d?\}", said)) == blanks, english
        assert re.search("[\u4e00-\u9fff]", said), english


def test_no_sentence_hides_a_later_one() -> None:
    for english, said in chinese.sentences().items():
        example = re.sub(r"\{\*?\}", "XX", english)
        blanks = len(re.findall(r"\{\*?\}", english))
        assert chinese.translated(example) == said.format(*["XX"] * blanks), english


@pytest.mark.parametrize("english", sorted(chinese.sentences(), key=lambda e: -e.count("{"))[:3])
def test_a_message_that_repeats_pieces_of_a_sentence_is_looked_up_in_no_time(english: str) -> None:
    """Once it took minutes: everything was tried again wherever a piece was found."""
    pieces = re.split(r"\{\*?\}", english)
    for repeated in (("x" + "y".join(piece * 60 for piece in pieces)) * 50, pieces[0] + "x".join(pieces[1:-1] * 400)):
        assert chinese.translated(repeated[:3990] + "!").endswith("!")


def test_what_is_looked_up_inside_may_go_deep() -> None:
    assert chinese.translated("x, line 1: " * 360).startswith("x第1行：x第1行：")
