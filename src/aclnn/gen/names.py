"""The tables of names: every exported function, and what it does here."""

from __future__ import annotations

from aclnn import ops
from aclnn.capi import functions
from aclnn.gen.tables import Table

_HEAD = {"en": ("function", "here", "what it does"), "zh": ("函数", "状态", "在本库中的行为")}
REAL = {"en": "real", "zh": "可用"}
STUB = {"en": "stub", "zh": "桩"}


def exported_functions(lang: str) -> Table:
    """The operators, the runtime, and then what is only a name."""
    real_first = sorted(functions.runtime_functions(), key=lambda f: not f.is_real)
    return _HEAD[lang], [*_operators(lang), *(row(f, lang) for f in real_first)]


def _operators(lang: str) -> list[tuple[str, ...]]:
    phase = {
        "en": "Phase 1: checks the call, answers the size of the workspace and an executor.",
        "zh": "第一段接口：校验参数，返回workspace大小与执行器。",
    }[lang]
    rows: list[tuple[str, ...]] = []
    for op in ops.all_ops():
        what = op.en if lang == "en" else op.zh
        for name in (f"{op.name}GetWorkspaceSize", op.name):
            rows.append((f"`{name}`", REAL[lang], what if name == op.name else phase))
    return rows


def row(function: functions.Function, lang: str) -> tuple[str, ...]:
    """What a function does, or what one that is only a name answers."""
    name, said = f"`{function.name}`", function.en if lang == "en" else function.zh
    if function.is_real:
        return name, REAL[lang], said
    answer, hidden = {
        "en": (f"207000: {said}.", " Found by dlsym, not declared."),
        "zh": (f"返回207000：{said}。", "仅可通过dlsym获取。"),
    }[lang]
    return name, STUB[lang], answer + ("" if function.is_declared else hidden)
