"""Return codes and the one exception that carries them."""

from __future__ import annotations

from enum import IntEnum

from aclnn.base.chinese import translated
from aclnn.base.text import visible, visible_lines


class Status(IntEnum):
    """The aclnn return codes."""

    SUCCESS = 0
    ACLNN_ERR_PARAM_NULLPTR = 161001
    ACLNN_ERR_PARAM_INVALID = 161002
    ACLNN_ERR_RUNTIME_ERROR = 361001
    ACLNN_ERR_INNER = 561000


class AclnnError(Exception):
    """A call that an operator refused: its code, and one sentence that says what is wrong.

    >>> error = AclnnError(Status.ACLNN_ERR_PARAM_INVALID, "aclnnEluBackward: alpha is -1; it must be at least 0.")
    >>> error.code, error.name
    (161002, 'ACLNN_ERR_PARAM_INVALID')
    """

    def __init__(
        self, code: int, message: str, *, argument: str | None = None, rule: str | None = None, message_zh: str = ""
    ):
        message, message_zh = visible_lines(message), visible_lines(message_zh)  # it may quote what others wrote
        super().__init__(code, message)
        self.code = int(code)
        self.name = Status(code).name
        self.message = message
        self.argument = argument
        self.rule = rule
        self._chinese = message_zh

    @property
    def message_zh(self) -> str:
        """The same sentence in Chinese; the message, which programs read, is English whatever the language."""
        return self._chinese or translated(self.message)

    def __str__(self) -> str:
        return self.said("en")

    def said(self, lang: str) -> str:
        """Code, name and sentence, as a terminal in this language shows them."""
        return f"[{self.code} {self.name}] {self.message_zh if lang == 'zh' else self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        details = {"argument": self.argument, "rule": self.rule, "message_zh": self._chinese}
        return _rebuild_error, (self.code, self.message, details)


def _rebuild_error(code: int, message: str, details: dict[str, str]) -> AclnnError:
    return AclnnError(code, message, **details)


def reason(error: BaseException) -> str:
    """What an exception of someone else's says, as a part of our sentence: its type and its first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__


def ours(error: Exception) -> AclnnError:
    """Whatever an exception is, as a refusal: what nobody foresaw is 561000, or 361001 where memory ended."""
    if isinstance(error, AclnnError):
        return error
    code = Status.ACLNN_ERR_RUNTIME_ERROR if isinstance(error, MemoryError) else Status.ACLNN_ERR_INNER
    return AclnnError(code, f"this should not happen, please report it: {reason(error)}.")


def invalid(message: str, argument: str | None = None, *, message_zh: str = "") -> AclnnError:
    """161002 for what is refused before a contract can look at it."""
    code = Status.ACLNN_ERR_PARAM_INVALID
    return AclnnError(code, visible(message), argument=argument, message_zh=visible(message_zh))
