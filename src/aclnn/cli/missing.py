"""What a program needs of the toolkit and we do not have: names the operator, and lists ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from aclnn import ops
from aclnn.base.status import invalid
from aclnn.base.text import visible
from aclnn.capi import functions
from aclnn.golden.read import untrusted

_OURS = re.compile(r"^(?:acl[A-Z]\w*|acl(?:nn|rt|mdl|op|prof|sys|blas|tdt|grph)\w+)$")
_NAMED = re.compile(rb"(?<=\0)acl\w+(?=\0)")
# What compilers and linkers say, in the two languages of their users.
_HEADER = re.compile(r"'?([^'\s:：]+\.h)'?\s?[:：]?\s?(?:No such file|file not found|没有那个文件)")
_SYMBOL = re.compile(r"undefined (?:reference to|symbol:?) [`'‘\"]?(\w+)|对\s*[`'‘]?(\w+)['’]?\s*未定义的引用")
_UNDECLARED = re.compile(
    r"[`'‘\"](\w+)[`'’\"]\s*(?:was not declared|undeclared|(?:在此作用域中)?(?:尚)?未声明)"
    r"|undeclared identifier '(\w+)'"
)


def explain(diagnostics: str) -> list[str]:
    """One sentence for every name in a compiler's complaints that is the toolkit's and not ours."""
    headers = dict.fromkeys(_HEADER.findall(diagnostics))
    symbols = [a or b for pattern in (_SYMBOL, _UNDECLARED) for a, b in pattern.findall(diagnostics)]
    sentences = [_of_header(name) for name in headers if name.startswith(("acl/", "aclnn/", "aclnnop/"))]
    absent = lacking(symbols)
    sentences += [_of_symbol(name) for name in absent if not _is_phase_of(name, absent)]
    return [*sentences, f"Operators here: {_operators()}."] if sentences else []


def lacking(symbols: Iterable[str]) -> list[str]:
    """Those of the symbols that are names of the toolkit which the library does not export."""
    ours = {*functions.exported(), *functions.OURS}
    return sorted({name for name in symbols if _OURS.match(name) and name not in ours})


def provided(symbols: Iterable[str]) -> list[str]:
    """Those that it does export."""
    return sorted(set(functions.exported()) & set(symbols))


def needed_by(path: Path) -> list[str]:
    """What a program, an object file or a library wants from others, by symbol or by dlsym."""
    nm = shutil.which("nm")
    if nm is None:
        raise invalid("there is no nm on the PATH, which reads symbols; on Debian and Ubuntu it comes with binutils.")
    if not path.is_file():
        raise invalid(f"there is no file {visible(str(path))}.")
    needed: set[str] = set()
    defined: set[str] = set()
    said = []
    for options in (["-D"], []):  # programs and libraries; objects and archives
        command = [nm, *options, "--format=posix", "--", str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", env=_plain_words())
        said.append(ended.stderr)
        for name, kind in (line.split()[:2] for line in ended.stdout.splitlines() if len(line.split()) > 1):
            (needed if kind in "Uw" else defined).add(name.partition("@")[0])
    if all("not recognized" in words for words in said):
        raise invalid(f"{visible(str(path))} is no program, object or library that nm can read.")
    return sorted((needed | _looked_up_in(path)) - defined)


def _plain_words() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _looked_up_in(path: Path) -> set[str]:
    """Names that stand in the file as texts of their own: what a program gives to dlsym."""
    with untrusted.opened(path) as source:
        whole = source.map(np.dtype(np.uint8), source.size, 0)
        return {name.decode() for name in _NAMED.findall(whole.data)}


def _of_header(name: str) -> str:
    stem = Path(name).stem
    if name.startswith("aclnnop/") and stem.startswith("aclnn_"):
        return f"{name}: the operator {_camel(stem)} is not part of aclnn-cpu."
    return f"{name}: this header is not part of aclnn-cpu."


def _of_symbol(name: str) -> str:
    operator = name.removesuffix("GetWorkspaceSize")
    if operator.startswith("aclnn"):
        return f"{name}: the operator {operator} is not part of aclnn-cpu."
    return f"{name}: this function is not part of aclnn-cpu."


def _is_phase_of(name: str, others: list[str]) -> bool:
    """Phase 1 of an operator that is named by its phase 2 already."""
    return name.endswith("GetWorkspaceSize") and name.removesuffix("GetWorkspaceSize") in others


def _camel(stem: str) -> str:
    """aclnn_foreach_add → aclnnForeachAdd."""
    first, *rest = stem.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _operators() -> str:
    return ", ".join(op.name for op in ops.all_ops())
