"""What the `acl` module of a prefix takes from contracts and headers: constants, and how operators are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from aclnn import ops
from aclnn.gen.headers import types

CAPI = Path(__file__).resolve().parents[1] / "capi"
MODULE = CAPI / "pyacl" / "acl"

_HEAD = '"""{what} Written by `make gen`; do not edit."""\n\nfrom __future__ import annotations\n\n'
_KINDS = {"bool": "b", "double": "d", "int8": "c", "int32": "i", "int64": "q"}
_CONSTANT = re.compile(r"(?:static const int |#define |^  )(ACL\w+)(?: = | )(-?(?:0x)?[0-9A-F]+)U?[;,\n]", re.M)


def targets() -> dict[Path, Callable[[], str]]:
    return {MODULE / "_constants.py": constants, MODULE / "_signatures.py": signatures}


def constants() -> str:
    """Every constant of the headers, under its name."""
    written = [(CAPI / "include" / "acl" / name).read_text(encoding="utf-8") for name in ("acl_base.h", "acl_rt.h")]
    one_per_line = "".join([types(), *written]).replace("{ ", "{\n  ").replace(", ", ",\n  ").replace(" }", "\n}")
    found = sorted({name: int(number, 0) for name, number in _CONSTANT.findall(one_per_line)}.items())
    lines = "".join(f"{name} = {number}\n" for name, number in found)
    return _HEAD.format(what="The constants of the C interface.") + lines


def signatures() -> str:
    """One letter per argument: a pointer, or how a value is passed."""
    rows = "".join(f'    "{op.name}": "{"".join(_KINDS.get(a.kind, "p") for a in op.args)}",\n' for op in ops.all_ops())
    return _HEAD.format(what="How operators are called.") + f"SIGNATURES = {{\n{rows}}}\n"
