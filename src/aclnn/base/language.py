"""The language people are spoken to in: `--lang`, else ACLNN_LANG, else the locale. Nobody else decides it."""

from __future__ import annotations

import locale
import os
import sys
from typing import NamedTuple

from aclnn.base.status import invalid

LANGUAGES = ("en", "zh")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")

_chosen: str | None = None


class Text(NamedTuple):
    """One sentence or phrase, in English and in Chinese."""

    en: str
    zh: str

    def say(self, lang: str | None = None) -> str:
        return self.zh if (lang or current()) == "zh" else self.en


def current(given: str | None = None) -> str:
    """en or zh: what is given, else what is asked for, but English where the output cannot show Chinese."""
    return given or ("zh" if asked() == "zh" and _can_show("中文") else "en")


def asked() -> str:
    """What was chosen for this run, else what the surroundings say; files are written in it."""
    return _chosen or _named(os.environ.get("ACLNN_LANG", "")) or _of_the_locale()


def choose(name: str | None) -> None:
    """Decides for the rest of this run; None leaves it to the surroundings."""
    global _chosen
    _chosen = None if name is None else checked(name, "--lang")


def checked(name: str, source: str) -> str:
    """The language that is asked for by name, or a refusal."""
    found = _named(name)
    if found is None:
        raise invalid(f"{source} is {name!r}; it must be {' or '.join(LANGUAGES)}.", "lang")
    return found


def _named(name: str) -> str | None:
    """zh for zh, zh_CN.UTF-8, zh-Hans or Chinese_China.936; en likewise; None for what is neither."""
    begun = name.strip().lower()
    if begun.startswith("chinese"):
        return "zh"
    return next((lang for lang in LANGUAGES if begun.replace("-", "_").split("_")[0].split(".")[0] == lang), None)


def _of_the_locale() -> str:
    named = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), None)
    return _named(locale.getlocale()[0] or "" if named is None else named) or "en"


def _can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True
