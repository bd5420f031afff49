"""What the C interface takes from the contracts: operator headers, the glue behind them, the numbers of types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from aclnn import ops
from aclnn.base import dtype as dtypes
from aclnn.base.device import DEFAULT, DEVICES
from aclnn.base.format import Format
from aclnn.base.status import Status
from aclnn.capi import functions
from aclnn.contract.model import Arg, Op
from aclnn.gen.tables import prototype, second_prototype

GENERATED = Path(__file__).resolve().parents[1] / "capi" / "generated"
_WRITTEN = "// Written by `make gen` from the contracts; do not edit.\n"


def targets() -> dict[Path, Callable[[], str]]:
    """Every file this module writes."""
    names = sorted({op.header for op in ops.all_ops()})
    headers = {GENERATED / "include" / "aclnnop" / f"aclnn_{name}.h": partial(header, name) for name in names}
    return headers | {
        GENERATED / "include" / "acl" / "acl_base_rt.h": types,
        GENERATED / "dtype_tables.h": dtype_tables,
        GENERATED / "operators.cpp": glue,
        GENERATED / "include" / "acl" / "acl_unsupported.h": unsupported,
        GENERATED / "stubs.cpp": stubs,
    }


def header(name: str) -> str:
    """One operator header: both phases of every operator that belongs there."""
    guard = f"ACLNN_CPU_ACLNNOP_ACLNN_{name.upper()}_H"
    body = "\n".join(_declaration(op) for op in ops.all_ops() if op.header == name)
    return (
        f"{_WRITTEN}#ifndef {guard}\n#define {guard}\n\n"
        '#include "aclnn/aclnn_base.h"\n\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
        f"{body}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
    )


def _declaration(op: Op) -> str:
    lines = [f"// {op.en}", "//", *(_described(a) for a in op.args)]
    return "\n".join(
        [
            *lines,
            f"ACLNN_CPU_API {prototype(op)};",
            f"ACLNN_CPU_API {second_prototype(op)};\n",
        ]
    )


def _described(arg: Arg) -> str:
    role = _role(arg).replace("_", " and ")
    return f"//   {arg.name} ({role}{', may be null' if arg.optional else ''}): {arg.en}"


def types() -> str:
    """aclDataType, aclFormat and the codes of operators."""
    numbered = sorted(dtypes.ALL, key=lambda d: d.number)
    enums = [
        _enum("aclDataType", [("ACL_DT_UNDEFINED", -1), *((f"ACL_{d.acl_name}", d.number) for d in numbered)]),
        _enum("aclFormat", [(f.acl_name, int(f)) for f in sorted(Format)]),
    ]
    codes = "".join(f"static const int {s.name} = {int(s)};\n" for s in Status if s)
    guard = "ACLNN_CPU_ACL_ACL_BASE_RT_H"
    return f"{_WRITTEN}#ifndef {guard}\n#define {guard}\n\n{_INT}{''.join(enums)}{codes}\n#endif\n"


_INT = """// In C++ every int is a value of these enumerations, so that one that is out of range can be refused.
#ifdef __cplusplus
#define ACLNN_CPU_INT : int
#else
#define ACLNN_CPU_INT
#endif

"""


def _enum(name: str, members: list[tuple[str, int]]) -> str:
    body = ",\n".join(f"  {member} = {number}" for member, number in members)
    return f"typedef enum {name} ACLNN_CPU_INT {{\n{body}\n}} {name};\n\n"


def dtype_tables() -> str:
    """What C++ needs to know about types and products without asking Python."""
    sizes = "".join(f"    case {d.number}: return {d.whole_bytes};\n" for d in dtypes.ALL if d.whole_bytes)
    aliases = dict.fromkeys((alias.lower(), p.soc) for p in DEVICES for alias in (p.key, p.name, p.soc))
    products = "".join(f'      {{"{alias}", "{soc}"}},\n' for alias, soc in aliases)
    return f"""{_WRITTEN}#pragma once

#include <strings.h>

#include <cstddef>

namespace aclnn_cpu {{

// Bytes of one element; 0 for a type that does not exist, or whose elements share bytes.
inline size_t itemsize_of(int dtype) {{
  switch (dtype) {{
{sizes}    default: return 0;
  }}
}}

// The soc name of a product, which may be named in any of its ways and in any case; the default's for anything else.
inline const char* soc_name_of(const char* product) {{
  static const char* const names[][2] = {{
{products}  }};
  for (const auto& entry : names) {{
    if (strcasecmp(product, entry[0]) == 0) return entry[1];
  }}
  return "{DEFAULT.soc}";
}}

}}  // namespace aclnn_cpu
"""


def glue() -> str:
    """The public functions of every operator: arguments into a signature, executor onto a stream."""
    headers = "".join(f'#include "aclnnop/aclnn_{name}.h"\n' for name in sorted({op.header for op in ops.all_ops()}))
    table = "".join(f'const Operator k{_stem(op)} = {{{i}, "{op.name}"}};\n' for i, op in enumerate(ops.all_ops()))
    bodies = "\n".join(_phases(op) for op in ops.all_ops())
    return (
        f'{_WRITTEN}{headers}#include "planning.h"\n\nusing namespace aclnn_cpu;\n\n'
        f'namespace {{\n\n{table}\n}}  // namespace\n\nextern "C" {{\n\n{bodies}\n}}  // extern "C"\n'
    )


def unsupported() -> str:
    """The declarations of functions that are only names. They take any arguments: those meant are not known here."""
    names = "".join(f"ACLNN_CPU_API aclError {f.name}(ACLNN_CPU_ANY_ARGUMENTS);\n" for f in _by_name() if f.is_declared)
    guard = "ACLNN_CPU_ACL_ACL_UNSUPPORTED_H"
    return f"""{_WRITTEN}
// Functions that have no meaning here. Each links, answers ACL_ERROR_RT_FEATURE_NOT_SUPPORT and says why in
// aclGetRecentErrMsg.
#ifndef {guard}
#define {guard}

#include "acl/acl_base.h"

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define ACLNN_CPU_ANY_ARGUMENTS ...
#else
#define ACLNN_CPU_ANY_ARGUMENTS
#endif

#ifdef __cplusplus
extern "C" {{
#endif

{names}
#ifdef __cplusplus
}}
#endif

#undef ACLNN_CPU_ANY_ARGUMENTS

#endif
"""


def stubs() -> str:
    """What those functions answer."""
    bodies = "".join(f'STUB({f.name}, "{f.en}.")\n' for f in _by_name())
    return f"""{_WRITTEN}#include "acl/acl.h"
#include "errors.h"

#define STUB(name, why) \\
  ACLNN_CPU_API aclError name(...) {{ return aclnn_cpu::fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, #name ": " why); }}

extern "C" {{

{bodies}
}}  // extern "C"
"""


def _by_name() -> list[functions.Function]:
    return sorted(functions.stubs(), key=lambda f: f.name)


def _stem(op: Op) -> str:
    return op.name.removeprefix("aclnn")


def _phases(op: Op) -> str:
    given = "\n".join(f"        {_written(a)}" for a in op.args)
    return f"""{prototype(op)} {{
  void* call_site = __builtin_return_address(0);
  return guarded("{op.name}", [&] {{
    return Planning(k{_stem(op)}, workspaceSize, executor, call_site)
{given}
        .plan();
  }});
}}

aclnnStatus {op.name}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {{
  return guarded("{op.name}", [&] {{
    return run_operator(k{_stem(op)}, workspace, workspaceSize, executor, stream);
  }});
}}
"""


def _role(arg: Arg) -> str:
    return "in_out" if arg.out and arg.given else "out" if arg.out else "in"


_WRITERS = {"scalar": "scalar", "int_array": "integers", "bool_array": "flags"}


def _written(arg: Arg) -> str:
    """How an argument gets into the signature."""
    if arg.is_tensor:
        return f'.{_role(arg)}("{arg.name}", {arg.name})'
    if arg.kind in _WRITERS:
        return f'.{_WRITERS[arg.kind]}("{arg.name}", {arg.name})'
    return f".{ {'bool': 'flag', 'double': 'real'}.get(arg.kind, 'integer') }({arg.name})"
