"""Options that several commands share, and what a shell may complete their values to."""

from __future__ import annotations

from typing import Annotated

import typer

from aclnn import ops
from aclnn.base import language
from aclnn.base.device import DEVICES
from aclnn.base.status import AclnnError
from aclnn.golden.judge.standards import STANDARDS
from aclnn.runtime.settings import ENGINES


def _beginning(words: list[str], begun: str) -> list[str]:
    return [word for word in words if word.lower().startswith(begun.lower())]


def operator_names(begun: str) -> list[str]:
    return _beginning([name for op in ops.all_ops() for name in (op.name, op.python)], begun)


def product_names(begun: str) -> list[str]:
    return _beginning([product.key for product in DEVICES], begun)


def standard_names(begun: str) -> list[str]:
    return _beginning(list(STANDARDS), begun)


def engine_names(begun: str) -> list[str]:
    return _beginning(list(ENGINES), begun)


def language_names(begun: str) -> list[str]:
    return _beginning(list(language.LANGUAGES), begun)


def _choose(name: str | None) -> None:
    if name is None:  # it may have been chosen before the command: aclnn --lang zh ops
        return
    try:
        language.choose(name)
    except AclnnError as error:
        raise typer.BadParameter(error.message) from None


Lang = Annotated[
    str | None,
    typer.Option(
        "--lang",
        help="Language: en or zh. Without it ACLNN_LANG decides, else the locale.",
        callback=_choose,
        is_eager=True,
        autocompletion=language_names,
    ),
]
Product = Annotated[
    str | None,
    typer.Option(help="The product to check against (default Atlas A2).", autocompletion=product_names),
]
Engine = Annotated[
    str | None, typer.Option(help=f"{', '.join(ENGINES[:-1])} or {ENGINES[-1]}.", autocompletion=engine_names)
]
