"""`aclnn ops` and `aclnn describe`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from aclnn import ops
from aclnn.cli.screen import print_table, say
from aclnn.gen import tables


class Lang(str, Enum):
    en = "en"
    zh = "zh"


LangOption = Annotated[Lang, typer.Option("--lang", help="Language: en or zh.")]

_TITLES = {
    "en": ("Prototype", "Arguments", "Rules, in the order they are checked", "Products"),
    "zh": ("函数原型", "参数说明", "校验规则（按检查顺序）", "产品支持情况"),
}

# What holds for every tensor would only repeat itself in the table of rules.
_OF_EVERY_TENSOR = {
    "en": "Of every tensor: its view stays inside its storage, and no two indexes of an output are the same element; "
    "when the work runs, no output overlaps another tensor{same}, no tensor the workspace (161002), and memory is "
    "there (161001).",
    "zh": "每个Tensor还须满足：视图不超出其存储范围，输出的任意两个下标不指向同一元素；"
    "执行时输出不与其他Tensor重叠{same}，任何Tensor不与workspace重叠（161002），且内存地址非空（161001）。",
}
_SAME_VIEW = {"en": " but for the same view", "zh": "（同一视图除外）"}


def operator_names(begun: str) -> list[str]:
    """What a shell may complete the name of an operator to."""
    known = (name for op in ops.all_ops() for name in (op.name, op.python))
    return [name for name in known if name.lower().startswith(begun.lower())]


def ops_command(lang: LangOption = Lang.en) -> None:
    """Lists the operators, and which dtypes each product takes."""
    print_table(tables.operators(lang.value))
    print_table(tables.support(lang.value), _TITLES[lang.value][3])


def describe(
    op: Annotated[
        str,
        typer.Argument(
            help="An operator, by vendor or Python name.", show_default=False, autocompletion=operator_names
        ),
    ],
    lang: LangOption = Lang.en,
) -> None:
    """Says what an operator does: prototype, arguments, every rule with its return code."""
    found = ops.find(op)
    prototype, arguments, rules, _ = _TITLES[lang.value]
    say(f"{found.name}  ·  aclnn.{found.python}\n{found.en if lang is Lang.en else found.zh}\n\n{prototype}\n")
    say(tables.prototype(found) + "\n")
    print_table(tables.arguments(found, lang.value), arguments)
    say("")
    print_table(tables.rules(found, lang.value), rules)
    say("\n" + _OF_EVERY_TENSOR[lang.value].format(same=_SAME_VIEW[lang.value] if found.in_place else ""))
