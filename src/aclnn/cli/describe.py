"""`aclnn ops` and `aclnn describe`."""

from __future__ import annotations

from typing import Annotated

import typer

from aclnn import ops
from aclnn.base.language import Text, current
from aclnn.cli.options import Lang, operator_names
from aclnn.cli.screen import print_table, say, tell
from aclnn.gen import tables

_PROTOTYPE, _ARGUMENTS = Text("Prototype", "函数原型"), Text("Arguments", "参数说明")
_RULES = Text("Rules, in the order they are checked", "校验规则（按检查顺序）")
_PRODUCTS = Text("Products", "产品支持情况")

# What holds for every tensor would only repeat itself in the table of rules.
_OF_EVERY_TENSOR = Text(
    "Of every tensor: its view stays inside its storage, and no two indexes of an output are the same element; "
    "when the work runs, no output overlaps another tensor{same}, no tensor the workspace (161002), and memory is "
    "there (161001).",
    "每个Tensor还须满足：视图不超出其存储范围，输出的任意两个下标不指向同一元素；"
    "执行时输出不与其他Tensor重叠{same}，任何Tensor不与workspace重叠（161002），且内存地址非空（161001）。",
)
_SAME_VIEW = Text(" but for the same view", "（同一视图除外）")


def ops_command(lang: Lang = None) -> None:
    """Lists the operators, and which dtypes each product takes."""
    print_table(tables.operators(current()))
    say("")
    print_table(tables.support(current()), _PRODUCTS.say())


def describe(
    op: Annotated[
        str,
        typer.Argument(
            help="An operator, by vendor or Python name.",
            metavar="OP",
            show_default=False,
            autocompletion=operator_names,
        ),
    ],
    lang: Lang = None,
) -> None:
    """Says what an operator does: prototype, arguments, every rule with its return code."""
    found = ops.find(op)
    tell("  ·  ".join((found.name, f"aclnn.{found.python}")))
    tell(f"{Text(found.en, found.zh).say()}\n\n{_PROTOTYPE.say()}\n")
    say(tables.prototype(found) + "\n")
    print_table(tables.arguments(found, current()), _ARGUMENTS.say())
    say("")
    print_table(tables.rules(found, current()), _RULES.say())
    say("")
    tell(_OF_EVERY_TENSOR.say().format(same=_SAME_VIEW.say() if found.in_place else ""))
