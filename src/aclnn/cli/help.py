"""`--help` in the reader's language, folded like everything else that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from aclnn.base.chinese import translated
from aclnn.base.language import Text, current
from aclnn.base.layout import fold, pairs
from aclnn.cli import screen
from aclnn.cli.options import refuse_empty_paths

Part = str | list[tuple[str, str]]

_WIDTH = 80  # where there is no terminal
_INDENT = 2
_USAGE, _OPTIONS = Text("Usage: ", "用法："), Text("Options:", "选项：")
_ARGUMENTS, _COMMANDS = Text("Arguments:", "参数："), Text("Commands:", "命令：")
_EXTRAS = {"default: ": "默认：", "required": "必填", "(dynamic)": "（视情况）"}


class _Helped:
    """What both kinds of commands do: the text of a help, whole."""

    def get_help(self: Any, ctx: Any) -> str:
        return laid_out(_parts(self, ctx))


class Command(_Helped, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        refuse_empty_paths(args)
        return super().parse_args(ctx, args)


class Group(_Helped, TyperGroup):
    """The command of commands."""


def laid_out(parts: Iterable[Part]) -> str:
    """Sentences, and pairs of a name and what it means, as a terminal shows them."""
    width = screen.width() or _WIDTH
    blocks = (fold(part, width) if isinstance(part, str) else pairs(part, width) for part in parts)
    return "\n".join(line.plain for block in blocks for line in block)


def _parts(command: Any, ctx: Any) -> Iterator[Part]:
    """Sentences, and tables of names and what they mean."""
    pieces = [re.sub(r"^\{(\w+)\}$", r"\1", piece) for piece in command.collect_usage_pieces(ctx)]
    yield _USAGE.say() + " ".join([ctx.command_path, *pieces]) + "\n"
    yield from (f"{' ' * _INDENT}{_joined(part)}\n" for part in _said(command.help or "").split("\n\n"))
    arguments: list[tuple[str, str]] = []
    options: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record:
            (arguments if param.param_type_name == "argument" else options).append(_record(param, *record))
    commands = getattr(command, "commands", {})
    listed = [(name, _said(one.help or "").split("\n\n")[0]) for name, one in commands.items() if not one.hidden]
    for title, rows in ((_ARGUMENTS, arguments), (_OPTIONS, options), (_COMMANDS, listed)):
        if rows:
            yield from (title.say(), [(name, _joined(text)) for name, text in rows], "")
    if command.epilog:
        yield Text("Example: ", "示例：").say() + command.epilog.removeprefix("Example: ")


def _record(param: Any, name: str, text: str) -> tuple[str, str]:
    """An option as it is written, and its help; types are said in lower case letters, whatever they are in Python."""
    english = " ".join((param.help or "").split())
    extra = " ".join(text.split()).removeprefix(english)
    shown = re.sub(r"<list\[(\w+)\]>", r"<\1>", name).replace(" range>", ">")
    if current() == "zh":
        for word, chinese in _EXTRAS.items():
            extra = extra.replace(word, chinese)
    return re.sub(r"<\w+>", lambda kind: kind[0].lower(), shown), _said(english) + extra


def _said(english: str) -> str:
    if current() == "en":
        return english
    return "\n\n".join(translated(_joined(part)) for part in english.split("\n\n"))


def _joined(text: str) -> str:
    return " ".join(text.split())
