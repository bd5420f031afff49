"""Options that several commands share, and what a shell may complete their values to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Annotated

import typer

from aclnn import ops
from aclnn.base import language
from aclnn.base.device import DEVICES
from aclnn.base.status import AclnnError, invalid
from aclnn.golden.judge.standards import STANDARDS
from aclnn.runtime.settings import ENGINES


def _beginning(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What completes the words of a list, whatever case they are begun in."""

    def complete(begun: str) -> list[str]:  # typer looks at the type
        return [word for word in words() if word.lower().startswith(begun.lower())]

    return complete


operator_names = _beginning(lambda: [name for op in ops.all_ops() for name in (op.name, op.python)])
product_names = _beginning(lambda: [product.key for product in DEVICES])
standard_names = _beginning(lambda: STANDARDS)
engine_names = _beginning(lambda: ENGINES)
language_names = _beginning(lambda: language.LANGUAGES)


_PATHS = ["-tp", "--target", "-gp", "--golden", "-o", "--out", "--join", "--attributes", "--also"]
_PATHS += ["--install", "--uninstall", "--output"]


def refuse_empty_paths(words: list[str]) -> None:
    """`-tp "$UNSET"` is a mistake; as a path it would be the folder one is in."""
    for name in _PATHS:
        if f"{name}=" in words or (name, "") in pairwise(words):
            raise invalid(f"{name} is empty; it must name a file or a folder.")


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
