"""What refusals, the command line and its help say, in Chinese: by the English sentence, so that code says it once.

The sentences are in chinese.txt, with blanks for what differs. Contracts have both languages in their rules.
"""

from __future__ import annotations

import re
from functools import cache

LONGEST = 4000  # letters of a message that is looked up; what a compiler said may be longer

_OPERATOR = re.compile(r"(aclnn[A-Z]\w*): (.+)", re.DOTALL)
_BLANK = re.compile(r"\{\*?\}")


def translated(message: str) -> str:
    """The sentence in Chinese, or as it is if nobody has translated it.

    >>> translated("aclnnElu: alpha is a list; it must be a number.")
    'aclnnElu：alpha是list；应为数值。'
    """
    if len(message) > LONGEST:
        return message
    begun = _OPERATOR.fullmatch(message)
    rest = translated(begun[2]) if begun else ""
    if begun and rest != begun[2]:
        return f"{begun[1]}：{rest}"
    for pieces, looked_up, chinese in _patterns():
        found = between(pieces, message)
        if found is not None:
            said = [translated(part) if i in looked_up else part for i, part in enumerate(found)]
            return chinese.format(*said)
    kind = re.fullmatch(r"an? (\w+)", message)
    return kind[1] if kind else message


@cache
def _patterns() -> list[tuple[list[str], frozenset[int], str]]:
    """The sentences; one with more words of its own is asked before one with fewer."""
    known = sorted(sentences().items(), key=lambda pair: -len(_BLANK.sub("", pair[0])))
    return [(_BLANK.split(english), _looked_up(english), chinese) for english, chinese in known]


@cache
def sentences() -> dict[str, str]:
    """The Chinese of every English sentence."""
    from importlib import resources  # takes as long to import as all of base; few programs are ever refused

    whole = resources.files("aclnn.base").joinpath("chinese.txt").read_text(encoding="utf-8")
    lines = [line for line in whole.split("\n") if line and not line.startswith("#")]
    return {english: chinese.strip() for english, chinese in zip(lines[::2], lines[1::2], strict=True)}


def between(pieces: list[str], message: str) -> list[str] | None:
    """What stands between the pieces of a sentence, as little as can be and never nothing; None if it does not fit.

    Every piece is looked for once, from left to right: a regular expression would try again wherever a message, which
    may hold what others wrote, repeats a piece.

    >>> between(["", " is ", "."], "a is is b.")
    ['a', 'is b']
    """
    first, *others = pieces
    if not others:
        return [] if message == first else None
    *inner, last = others
    if not (message.startswith(first) and message.endswith(last)):
        return None
    found, at, end = [], len(first), len(message) - len(last)
    for piece in inner:
        place = message.find(piece, at + 1, end)
        if place < 0:
            return None
        found.append(message[at:place])
        at = place + len(piece)
    return [*found, message[at:end]] if at < end else None


def _looked_up(english: str) -> frozenset[int]:
    return frozenset(i for i, blank in enumerate(_BLANK.findall(english)) if blank == "{*}")
