"""The names of the C interface: headers that stand alone in C and C++, and a library that has what they declare."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from aclnn.base import dtype as dtypes
from aclnn.base.format import Format
from aclnn.capi import functions, prefix
from aclnn.capi.build import INCLUDES
from aclnn.gen import clients, pyacl
from tests.doors.c_door import library
from tests.doors.toolchain import PROGRAMS, built, needs_compiler, run_program

pytestmark = needs_compiler

LANGUAGES = {"c99": ["gcc", "-x", "c"], "c++11": ["g++", "-x", "c++"], "c++17": ["g++", "-x", "c++"]}
DOCS = Path(__file__).resolve().parents[2] / "docs"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
HEADERS = sorted(str(path.relative_to(folder)) for folder in INCLUDES for path in folder.rglob("*.h"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_header_stands_alone(language: str, tmp_path: Path) -> None:
    for header in HEADERS:
        source = tmp_path / "one.c"
        source.write_text(f'#include "{header}"\n#include "{header}"\n')
        flags = [*LANGUAGES[language], f"-std={language}", *STRICT, "-fsyntax-only", *prefix.compile_flags(built())]
        ended = subprocess.run([*flags, str(source)], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_constant_has_its_number(language: str, tmp_path: Path) -> None:
    target = tmp_path / "names"
    flags = [*LANGUAGES[language], f"-std={language}", *STRICT, *prefix.compile_flags(built())]
    command = [*flags, str(PROGRAMS / "names.c"), *prefix.link_flags(built()), "-o", str(target)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    ran = run_program([target], {})
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.parametrize("language", ["c99", "c++11"])
def test_every_function_can_be_named_and_linked(language: str, tmp_path: Path) -> None:
    names = [name for name in functions.exported() if name not in _hidden()]
    includes = "".join(f'#include "{header}"\n' for header in HEADERS)
    uses = "".join(f"  (void (*)(void))&{name},\n" for name in names)
    source, target = tmp_path / "uses.c", tmp_path / "uses"
    whole = f"void (*functions[])(void) = {{\n{uses}}};\nint main(void) {{ return functions[0] == 0; }}\n"
    source.write_text(includes + whole)
    flags = [*LANGUAGES[language], f"-std={language}", "-Wall", "-Werror", *prefix.compile_flags(built())]
    command = [*flags, str(source), *prefix.link_flags(built()), "-o", str(target)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert run_program([target], {}).returncode == 0


def test_the_library_exports_what_is_listed_and_nothing_else() -> None:
    printed = subprocess.run(
        ["nm", "-D", "--defined-only", built() / "lib64" / prefix.LIBRARY], capture_output=True, text=True, check=True
    )
    found = {line.split()[-1] for line in printed.stdout.splitlines()}
    assert found == {*functions.exported(), *functions.OURS}


def test_the_headers_declare_what_is_listed() -> None:
    texts = (path.read_text(encoding="utf-8") for folder in INCLUDES for path in folder.rglob("*.h"))
    declared = [name for text in texts for name in re.findall(r"ACLNN_CPU_API[^;(]*?(acl\w+)\(", text)]
    assert sorted(declared) == sorted(set(functions.exported()) - _hidden())


def _hidden() -> set[str]:
    return {f.name for f in functions.runtime_functions() if not f.is_declared}


def test_the_table_of_what_clients_need_is_true() -> None:
    state = {row[0].strip("`"): row[1] for row in clients.needs("en")[1]}
    stubs = {f.name for f in functions.stubs()}
    for name in clients.FUNCTIONS:
        wanted = "stub" if name in stubs else "real" if name in functions.exported() else "absent"
        assert state[name] == wanted
    assert state["hooks of frameworks' executor caches"] == "absent"
    grouped = clients.constant_names()
    assert (len(grouped["aclDataType"]), len(grouped["aclFormat"])) == (len(dtypes.ALL) + 1, len(Format))
    listed = [name for names in grouped.values() for name in names]
    everything = re.findall(r"^(\w+) = ", (pyacl.MODULE / "_constants.py").read_text(encoding="utf-8"), re.M)
    loose = {"ACL_HOST", "ACL_DEVICE", "ACL_CALLBACK_BLOCK", "ACL_CALLBACK_NO_BLOCK", "ACL_PKG_VERSION_MAX_SIZE"}
    assert set(everything) - set(listed) == {*loose, "ACL_PKG_VERSION_PARTS_MAX_SIZE"}
    assert len(listed) == len(set(listed))


def test_every_page_lists_every_function() -> None:
    for lang in ("en", "zh"):
        text = (DOCS / lang / "names.md").read_text(encoding="utf-8")
        assert [name for name in functions.exported() if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("stub", functions.stubs(), ids=lambda stub: stub.name)
def test_a_name_without_a_meaning_answers_and_says_why(stub: functions.Function) -> None:
    lib = library()
    lib.aclGetRecentErrMsg()
    assert getattr(lib, stub.name)(ctypes.c_void_p(1), 2, None) == 207000
    assert lib.aclGetRecentErrMsg().decode() == f"{stub.name}: {stub.en}."


def _tensor(lib: ctypes.CDLL, dtype: int, form: int, *sizes: int) -> ctypes.c_void_p:
    dims, rank = (ctypes.c_int64 * len(sizes))(*sizes), ctypes.c_uint64(len(sizes))
    memory = ctypes.c_void_p(4096)  # never read: phase 1 looks at descriptions alone
    made = lib.aclCreateTensor(dims, rank, dtype, None, ctypes.c_int64(0), form, dims, rank, memory)
    assert made is not None, lib.aclGetRecentErrMsg()
    return ctypes.c_void_p(made)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_tensor_of_any_dtype_can_be_made_and_its_operator_judges_it(dtype: dtypes.DType) -> None:
    lib, one, read = library(), ctypes.c_float(1), ctypes.c_int()
    x, scalar = _tensor(lib, dtype.number, 2, 4), ctypes.c_void_p(lib.aclCreateScalar(ctypes.byref(one), 0))
    assert (lib.aclGetDataType(x, ctypes.byref(read)), read.value) == (0, dtype.number)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    asked = (x, scalar, scalar, scalar, x, ctypes.byref(size), ctypes.byref(executor))
    code, said = lib.aclnnEluGetWorkspaceSize(*asked), lib.aclGetRecentErrMsg().decode()
    assert code == (0 if dtype in dtypes.FLOATS else 161002), said
    assert code == 0 or f"self has dtype {dtype};" in said
    for destroy, handle in (("AclOpExecutor", executor), ("Tensor", x), ("Scalar", scalar)):
        assert getattr(lib, f"aclDestroy{destroy}")(handle) == 0


@pytest.mark.parametrize("form", Format, ids=str)
def test_a_tensor_of_any_format_can_be_made_and_its_operator_judges_it(form: Format) -> None:
    lib, read = library(), ctypes.c_int()
    x = _tensor(lib, 0, int(form), 5, 1, 2)
    weight, bias, out = (_tensor(lib, 0, 2, *sizes) for sizes in ((1, 2, 2), (2,), (5, 1, 2)))
    assert (lib.aclGetFormat(x, ctypes.byref(read)), read.value) == (0, int(form))
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    asked = (x, weight, bias, ctypes.c_int64(0), out, ctypes.c_int8(0), ctypes.byref(size), ctypes.byref(executor))
    code, said = lib.aclnnConvTbcGetWorkspaceSize(*asked), lib.aclGetRecentErrMsg().decode()
    assert code == (0 if form in (Format.ND, Format.NCL) else 161002), said
    assert code == 0 or f"format {form}" in said
    assert lib.aclDestroyAclOpExecutor(executor) == 0
    assert [lib.aclDestroyTensor(handle) for handle in (x, weight, bias, out)] == [0] * 4
