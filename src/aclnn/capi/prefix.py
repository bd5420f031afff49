"""What a prefix holds beside headers and library: the other library names, set_env.sh, CMake and pkg-config files."""

from __future__ import annotations

import shlex
from pathlib import Path

LIBRARY = "libascendcl.so"
SAME = "libacl_rt.so"  # the runtime's other name: programs link with it alone
OTHER_NAMES = ("libnnopbase.so", "libopapi.so", "libopapi_nn.so", "libopapi_math.so")
LINKED = ("ascendcl", "nnopbase", "opapi")

_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME", "ASCEND_CUSTOM_PATH")

_CMAKE = """# find_package(aclnn): the target aclnn::aclnn, and one per library (aclnn::ascendcl, aclnn::opapi, …).
get_filename_component(ACLNN_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ACLNN_INCLUDE_DIRS "${ACLNN_PREFIX}/include")
set(ACLNN_LIBRARY_DIRS "${ACLNN_PREFIX}/lib64")
foreach(name ascendcl acl_rt nnopbase opapi opapi_nn opapi_math)
  if(NOT TARGET aclnn::${name})
    add_library(aclnn::${name} SHARED IMPORTED)
    set_target_properties(aclnn::${name} PROPERTIES
      IMPORTED_LOCATION "${ACLNN_PREFIX}/lib64/lib${name}.so"
      IMPORTED_SONAME "lib${name}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${ACLNN_PREFIX}/include")
  endif()
endforeach()
if(NOT TARGET aclnn::aclnn)
  add_library(aclnn::aclnn INTERFACE IMPORTED)
  set_target_properties(aclnn::aclnn PROPERTIES
    INTERFACE_LINK_LIBRARIES "aclnn::ascendcl;aclnn::nnopbase;aclnn::opapi")
endif()
"""

_CMAKE_VERSION = """set(PACKAGE_VERSION "{version}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""

_PKG_CONFIG = """prefix={prefix}
Name: aclnn
Description: The aclnn operators on any CPU, for C++ programs
Version: {version}
Cflags: -I${{prefix}}/include
Libs: -L${{prefix}}/lib64 -Wl,-rpath,${{prefix}}/lib64 {libraries}
"""


def facade(name: str, folder: Path) -> list[str]:
    """The options that make another library name: nothing but that name, and the need of the library itself.

    Programs then record every name they were linked with, as they do with the vendor's libraries.
    """
    own = (f"-Wl,-soname,{name}", "-Wl,--no-as-needed,-rpath,$ORIGIN,-z,nodelete")
    return ["-shared", "-nostdlib", "-x", "c", "/dev/null", *own, f"-L{folder}", "-lascendcl", "-o", str(folder / name)]


def write_texts(folder: Path, final: Path, version: str) -> None:
    """The texts of the prefix in `folder`, which will stand at `final`."""
    cmake, pkgconfig = folder / "lib" / "cmake" / "aclnn", folder / "lib" / "pkgconfig"
    for place in (cmake, pkgconfig):
        place.mkdir(parents=True)
    _write(folder / "set_env.sh", environment(final))
    _write(cmake / "aclnn-config.cmake", _CMAKE)
    _write(cmake / "aclnn-config-version.cmake", _CMAKE_VERSION.format(version=version))
    libraries = " ".join(f"-l{name}" for name in LINKED)
    _write(
        pkgconfig / "aclnn.pc",
        _PKG_CONFIG.format(prefix=str(final).replace(" ", "\\ "), version=version, libraries=libraries),
    )


def compile_flags(folder: Path) -> list[str]:
    return [f"-I{folder / 'include'}"]


def sanitizer_flags(folder: Path, links: bool) -> list[str]:
    """The sanitizers that serve a program with Python inside, and what they have to know about it."""
    options = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g"]
    source = ["-x", "c++", str(folder / "share" / "aclnn" / "sanitizers.cpp"), "-x", "none"]
    return [*options, *(source if links else [])]


def link_flags(folder: Path) -> list[str]:
    lib = folder / "lib64"
    return [f"-L{lib}", f"-Wl,-rpath,{lib}", *(f"-l{name}" for name in LINKED)]


def environment(folder: Path, *, installed: bool = False) -> str:
    """The lines a shell evaluates: where the toolkit is, and where its libraries, packages and configs are found.

    `installed`: an installed prefix has a folder for operators and one for Python, too.
    """
    home = shlex.quote(str(folder))
    lines = [f"export {name}={home}" for name in _VARIABLES]
    lines += [f"export ASCEND_OPP_PATH={shlex.quote(str(folder / 'opp'))}"] if installed else []
    for variable, place in (
        ("LD_LIBRARY_PATH", "lib64"),
        ("PKG_CONFIG_PATH", "lib/pkgconfig"),
        ("CMAKE_PREFIX_PATH", ""),
        *([("PYTHONPATH", "python/site-packages")] if installed else []),
    ):
        path = shlex.quote(str(folder / place))
        lines.append(f"export {variable}={path}${{{variable}:+:${{{variable}}}}}")
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
