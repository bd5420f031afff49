"""Every function of the C++ library beside the operators: what it does here, or why it is only a name.

From functions.txt and the table of stubs come the stubs, the header that declares them, and the page that lists every
exported function. A test holds these, the headers and the library's symbols together.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from aclnn import ops


class Function(NamedTuple):
    """One exported function."""

    name: str
    is_real: bool  # else a stub: it answers 207000 and leaves its sentence
    en: str
    zh: str
    is_declared: bool = True  # in a header; the others are found by dlsym alone


class Stubs(NamedTuple):
    """Functions that have no meaning here for one reason."""

    en: str
    zh: str
    names: tuple[str, ...]
    is_declared: bool = True


_STUBS = (
    Stubs(
        "offline models are not part of this library",
        "本库不含离线模型",
        ("aclmdlExecute", "aclmdlExecuteAsync", "aclmdlLoadFromFile", "aclmdlLoadFromMem", "aclmdlUnload"),
    ),
    Stubs(
        "work of a stream is not captured into graphs here",
        "此处不支持将流上的任务捕获为图",
        ("aclmdlRICaptureBegin", "aclmdlRICaptureEnd", "aclmdlRIDestroy", "aclmdlRIExecuteAsync"),
        is_declared=False,
    ),
    Stubs(
        "operators are called through their own two functions here",
        "此处算子只通过其两段式接口调用",
        ("aclopCompile", "aclopCompileAndExecute", "aclopExecuteV2", "aclopSetModelDir"),
    ),
    Stubs(
        "there is nothing to dump; the memory of the device is ordinary memory",
        "无需dump：设备内存就是普通内存",
        ("aclDumpSetup", "aclmdlFinalizeDump", "aclmdlInitDump", "aclmdlSetDump"),
    ),
    Stubs(
        "there is no profiler; ACLNN_VERBOSE=1 prints one line per run",
        "没有profiler；ACLNN_VERBOSE=1会逐次输出一行",
        ("aclprofFinalize", "aclprofInit", "aclprofStart", "aclprofStop"),
    ),
    Stubs(
        "there is no such thing on a CPU",
        "CPU上没有对应的概念",
        (
            "aclrtAllocatorRegister",
            "aclrtCtxGetSysParamOpt",
            "aclrtCtxSetSysParamOpt",
            "aclrtDeviceCanAccessPeer",
            "aclrtDeviceDisablePeerAccess",
            "aclrtDeviceEnablePeerAccess",
            "aclrtGetDeviceUtilizationRate",
            "aclrtSetGroup",
            "aclrtSetTsDevice",
        ),
    ),
    Stubs(
        "it is not part of this library",
        "本库不提供",
        (
            "aclrtMallocCached",
            "aclrtMemFlush",
            "aclrtMemInvalidate",
            "aclrtMemcpy2d",
            "aclrtMemcpy2dAsync",
            "aclrtResetEvent",
            "aclrtSetExceptionInfoCallback",
            "aclrtSetOpExecuteTimeOut",
            "aclrtSetOpWaitTimeout",
            "aclrtStreamAbort",
        ),
    ),
)

OURS = ("aclnn_cpu_live_objects", "aclnn_cpu_use_engine")
"""What the library exports for its own tests."""


def stubs() -> list[Function]:
    """The functions that are only names."""
    return [
        Function(name, False, group.en, group.zh, group.is_declared) for group in _STUBS for name in sorted(group.names)
    ]


def runtime_functions() -> list[Function]:
    """Everything beside the operators, as it is listed."""
    lines = resources.files("aclnn.capi").joinpath("functions.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if not line.startswith("#")]
    return [Function(name, True, en, zh) for name, en, zh in rows] + stubs()


def operator_functions() -> list[str]:
    """Both phases of every operator."""
    return [name for op in ops.all_ops() for name in (f"{op.name}GetWorkspaceSize", op.name)]


def exported() -> list[str]:
    """Every name that a program can find in the library."""
    return sorted([*(f.name for f in runtime_functions()), *operator_functions()])
