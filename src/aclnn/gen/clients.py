"""What public programs ask a toolkit for, name by name, and what they find here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from aclnn.capi import functions
from aclnn.gen import pyacl
from aclnn.gen.names import REAL, STUB, row
from aclnn.gen.tables import Table

FUNCTIONS = (
    "aclrtQueryEvent",
    "aclrtResetDeviceForce",
    "aclrtDestroyStreamForce",
    "aclrtCreateEventExWithFlag",
    "aclrtLaunchHostFunc",
    "aclsysGetCANNVersion",
    "aclmdlRICaptureBegin",
    "aclmdlRICaptureEnd",
    "aclmdlRIExecuteAsync",
    "aclmdlRIDestroy",
    "InitHugeMemThreadLocal",
    "UnInitHugeMemThreadLocal",
    "ReleaseHugeMem",
)
"""Functions that frameworks name beyond those of the documents' samples."""

_CONSTANTS = {
    "aclDataType": r"ACL_(?!FORMAT|ERROR|EVENT|STREAM|MEM|PKG|CALLBACK|FRACTAL|HOST|DEVICE|DDR|HBM|SUCCESS)\w+",
    "aclFormat": r"ACL_(?:FORMAT_\w+|FRACTAL_Z_3D)",
    "aclError": r"ACL_(?:SUCCESS|ERROR_\w+)",
    "aclnnStatus": r"ACLNN_ERR_\w+",
    "aclrtEvent…, aclrtStream…": r"ACL_(?:EVENT|STREAM)_\w+",
    "aclrtMem…": r"ACL_(?:MEM|DDR|HBM)\w*",
    "aclCANNPackageName": r"ACL_PKG_NAME_\w+",
}
_ABSENT = {"en": "absent", "zh": "无"}
_NOT_FOUND = {
    "en": "Looked up by name; who does not find it goes on without.",
    "zh": "按名称查找；找不到时程序自行绕过。",
}
_HOOKS = {"en": "hooks of frameworks' executor caches", "zh": "框架的执行器缓存钩子"}
_MODULES = {"acl": "__init__", "acl.rt": "rt", "acl.util": "util", "acl.nn": "nn"}


def needs(lang: str) -> Table:
    """One row per function; constants and functions of Python by group."""
    head = {"en": ("what", "here", "names, or what it does"), "zh": ("名称", "状态", "包含的名称，或行为")}[lang]
    return head, [*_constants(lang), *_functions(lang), *_python(lang)]


def constant_names() -> dict[str, list[str]]:
    """The constants of the headers by what they belong to."""
    found = re.findall(r"^(ACL\w+) = ", pyacl.constants(), re.M)
    return {group: [name for name in found if re.fullmatch(pattern, name)] for group, pattern in _CONSTANTS.items()}


def python_names() -> dict[str, list[str]]:
    """The public functions of the `acl` module, by module."""
    return {module: sorted(_defined(pyacl.MODULE / f"{file}.py")) for module, file in _MODULES.items()}


def _defined(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def _constants(lang: str) -> Iterator[tuple[str, ...]]:
    for group, names in constant_names().items():
        yield f"`{group}`", REAL[lang], ", ".join(f"`{name}`" for name in names)


def _functions(lang: str) -> Iterator[tuple[str, ...]]:
    known = {f.name: f for f in functions.runtime_functions()}
    for name in FUNCTIONS:
        yield row(known[name], lang) if name in known else (f"`{name}`", _ABSENT[lang], _NOT_FOUND[lang])
    yield _HOOKS[lang], _ABSENT[lang], _NOT_FOUND[lang]


def _python(lang: str) -> Iterator[tuple[str, ...]]:
    for module, names in python_names().items():
        yield f"`{module}`", REAL[lang], ", ".join(f"`{name}`" for name in names)
    absent = {
        "en": "Every function raises `acl.NotSupportedError` with a sentence.",
        "zh": "任一函数均抛出`acl.NotSupportedError`并说明原因。",
    }
    yield "`acl.mdl`, `acl.op`, `acl.blas`, `acl.media`, `acl.himpi`, `acl.tdt`, `acl.prof`", STUB[lang], absent[lang]
