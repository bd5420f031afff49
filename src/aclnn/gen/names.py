"""The tables of names: every exported function, and what it does here."""

from __future__ import annotations

from aclnn import ops
from aclnn.capi import functions
from aclnn.gen.tables import Table

_HEAD = {"en": ("function", "here", "what it does"), "zh": ("函数", "状态", "在本库中的行为")}
_REAL = {"en": "real", "zh": "可用"}
_STUB = {"en": "stub", "zh": "桩"}


def exported_functions(lang: str) -> Table:
    """The operators, the runtime, and then what is only a name."""
    runtime = functions.runtime_functions()
    real = [(f"`{f.name}`", _REAL[lang], said(f, lang)) for f in runtime if f.is_real]
    stubs = [(f"`{f.name}`", _STUB[lang], answered(f, lang)) for f in runtime if not f.is_real]
    return _HEAD[lang], [*_operators(lang), *real, *stubs]


def _operators(lang: str) -> list[tuple[str, ...]]:
    phase = {
        "en": "Phase 1: checks the call, answers the size of the workspace and an executor.",
        "zh": "第一段接口：校验参数，返回workspace大小与执行器。",
    }[lang]
    rows: list[tuple[str, ...]] = []
    for op in ops.all_ops():
        what = op.en if lang == "en" else op.zh
        for name in (f"{op.name}GetWorkspaceSize", op.name):
            rows.append((f"`{name}`", _REAL[lang], what if name == op.name else phase))
    return rows


def said(function: functions.Function, lang: str) -> str:
    return function.en if lang == "en" else function.zh


def answered(function: functions.Function, lang: str) -> str:
    if lang == "zh":
        return f"返回207000：{function.zh}。" + ("" if function.is_declared else "仅可通过dlsym获取。")
    return f"207000: {function.en}." + ("" if function.is_declared else " Found by dlsym, not declared.")
