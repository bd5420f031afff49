"""Every function of the C++ library beside the operators: what it does here, or why it is only a name.

From this table come the stubs, the header that declares them, and the page that lists every exported function. A test
holds the table, the headers and the library's symbols together.
"""

from __future__ import annotations

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


_REAL = (
    (
        "aclInit",
        "Begins; a second call answers 100002 and changes nothing.",
        "初始化；重复调用返回100002，不产生影响。",
    ),
    ("aclFinalize", "Ends; ACLNN_CHECK=1 lists what is still alive.", "去初始化；ACLNN_CHECK=1时列出尚未释放的对象。"),
    ("aclnnInit", "Always 0; the engine starts with the first operator.", "恒返回0；引擎在首个算子调用时启动。"),
    ("aclnnFinalize", "Always 0.", "恒返回0。"),
    (
        "aclGetRecentErrMsg",
        "The sentences of this thread, newest first; reading clears them.",
        "本线程的错误说明，最新在前；读取后清空。",
    ),
    (
        "aclsysGetCANNVersion",
        "The version of this library, under every package name.",
        "无论查询哪个包名，均返回本库的版本。",
    ),
    (
        "aclDataTypeSize",
        "Bytes of an element; 0 where several share a byte.",
        "单个元素的字节数；多个元素共用一字节时为0。",
    ),
    ("aclFloatToFloat16", "Rounds to nearest, ties to even.", "就近舍入，中间值取偶。"),
    ("aclFloat16ToFloat", "Exact.", "精确转换。"),
    (
        "aclrtSetDevice",
        "Device 0 or 1, for this thread; both are this computer.",
        "为本线程选择设备0或1；两者均为本机。",
    ),
    ("aclrtResetDevice", "Waits for the device's streams.", "等待该设备上的流执行完毕。"),
    (
        "aclrtResetDeviceForce",
        "As aclrtResetDevice: queued work is finished.",
        "同aclrtResetDevice：已下发的任务会执行完。",
    ),
    ("aclrtGetDevice", "The device of this thread; 107002 if it has set none.", "本线程的设备；未设置时返回107002。"),
    ("aclrtGetDeviceCount", "2.", "返回2。"),
    ("aclrtGetSocName", "The name of the product in ACLNN_PRODUCT.", "ACLNN_PRODUCT所选产品的SoC名称。"),
    ("aclrtGetRunMode", "ACL_HOST.", "返回ACL_HOST。"),
    ("aclrtGetVersion", "The version of this library.", "本库的版本。"),
    ("aclrtCreateContext", "A context on a device, made current.", "在设备上创建Context并设为当前。"),
    ("aclrtDestroyContext", "Destroys what aclrtCreateContext made.", "销毁由aclrtCreateContext创建的Context。"),
    ("aclrtSetCurrentContext", "For this thread.", "对本线程生效。"),
    ("aclrtGetCurrentContext", "Of this thread; 107002 if there is none.", "本线程的Context；没有时返回107002。"),
    ("aclrtCreateStream", "A queue with a worker thread of its own.", "创建流：一个队列和专属的工作线程。"),
    (
        "aclrtCreateStreamWithConfig",
        "As aclrtCreateStream; priority and flags change nothing.",
        "同aclrtCreateStream；优先级与标志不起作用。",
    ),
    ("aclrtDestroyStream", "Finishes what is queued first.", "先执行完已下发的任务再销毁。"),
    (
        "aclrtDestroyStreamForce",
        "As aclrtDestroyStream: queued work is finished.",
        "同aclrtDestroyStream：已下发的任务会执行完。",
    ),
    (
        "aclrtSynchronizeStream",
        "Waits; answers the first error of the work, once.",
        "等待完成；任务的首个错误在此返回一次。",
    ),
    ("aclrtSynchronizeStreamWithTimeout", "The same, at most so many milliseconds.", "同上，最多等待指定毫秒数。"),
    ("aclrtStreamQuery", "Whether the stream is idle.", "查询流是否空闲。"),
    ("aclrtSynchronizeDevice", "Waits for every stream of the device.", "等待该设备的全部流。"),
    ("aclrtStreamWaitEvent", "The stream waits for what the event has recorded so far.", "流等待该事件此前的记录。"),
    ("aclrtCreateEvent", "An event.", "创建事件。"),
    (
        "aclrtCreateEventWithFlag",
        "An event; every flag is taken, all keep times.",
        "创建事件；接受任意标志，均可计时。",
    ),
    ("aclrtCreateEventExWithFlag", "As aclrtCreateEventWithFlag.", "同aclrtCreateEventWithFlag。"),
    ("aclrtDestroyEvent", "Destroys it; who waits for it goes on waiting.", "销毁事件；正在等待者不受影响。"),
    ("aclrtRecordEvent", "Marks a point in a stream.", "在流中记录事件。"),
    ("aclrtSynchronizeEvent", "Waits for the latest recording.", "等待最近一次记录完成。"),
    ("aclrtQueryEvent", "COMPLETE once the latest recording was reached.", "最近一次记录到达后为COMPLETE。"),
    (
        "aclrtQueryEventStatus",
        "The same, with the numbers of aclrtEventRecordedStatus.",
        "同上，取值为aclrtEventRecordedStatus。",
    ),
    ("aclrtEventElapsedTime", "Milliseconds between two recordings.", "两次记录之间的毫秒数。"),
    (
        "aclrtMalloc",
        "Memory, 64-byte aligned and not zeroed; the policy changes nothing.",
        "分配内存，64字节对齐、不清零；策略不起作用。",
    ),
    ("aclrtMallocAlign32", "As aclrtMalloc.", "同aclrtMalloc。"),
    ("aclrtFree", "Frees once no queued work needs it.", "待已下发任务不再使用后释放。"),
    ("aclrtMallocHost", "Memory of the host.", "分配主机内存。"),
    ("aclrtFreeHost", "Frees memory of the host.", "释放主机内存。"),
    ("aclrtMemcpy", "Copies at once.", "立即拷贝。"),
    ("aclrtMemcpyAsync", "Copies in its place on the stream.", "在流上按序拷贝。"),
    ("aclrtMemset", "Fills at once.", "立即填充。"),
    ("aclrtMemsetAsync", "Fills in its place on the stream.", "在流上按序填充。"),
    ("aclrtGetMemInfo", "Free and total memory of this computer.", "本机的空闲内存与总内存。"),
    (
        "aclrtLaunchCallback",
        "Runs in the thread that subscribed, in aclrtProcessReport.",
        "由订阅线程在aclrtProcessReport中执行。",
    ),
    (
        "aclrtLaunchHostFunc",
        "Runs on the stream's own thread, in its place; it must not wait for streams.",
        "在流的线程上按序执行；函数内不得等待流。",
    ),
    ("aclrtSubscribeReport", "This thread runs the stream's callbacks.", "由该线程执行流的回调。"),
    ("aclrtUnSubscribeReport", "Ends that; callbacks not yet run are dropped.", "取消订阅；未执行的回调被丢弃。"),
    ("aclrtProcessReport", "Waits for one callback and runs it.", "等待并执行一个回调。"),
    ("aclCreateTensor", "A view on memory; the data may come later.", "创建Tensor视图；数据地址可稍后设置。"),
    ("aclInitTensor", "Describes an existing tensor anew.", "重新描述已有Tensor。"),
    ("aclDestroyTensor", "Destroys it; work on streams keeps what it needs.", "销毁Tensor；已下发任务不受影响。"),
    ("aclGetViewShape", "A copy, for delete[].", "返回副本，用delete[]释放。"),
    ("aclGetViewStrides", "A copy, for delete[].", "返回副本，用delete[]释放。"),
    ("aclGetStorageShape", "A copy, for delete[].", "返回副本，用delete[]释放。"),
    ("aclGetViewOffset", "In elements.", "以元素为单位。"),
    ("aclGetFormat", "As given.", "与创建时一致。"),
    ("aclGetDataType", "As given.", "与创建时一致。"),
    ("aclGetRawTensorAddr", "The address of the storage.", "存储的起始地址。"),
    ("aclSetRawTensorAddr", "Sets it.", "设置存储的起始地址。"),
    ("aclCreateTensorList", "A list of tensors.", "创建Tensor列表。"),
    ("aclDestroyTensorList", "Destroys the list, and members that are still alive.", "销毁列表及其仍存活的成员。"),
    ("aclGetTensorListSize", "How many members.", "成员个数。"),
    (
        "aclCreateScalar",
        "A number, copied; types that share bytes are refused.",
        "拷贝一个数值；不足一字节的类型不可用。",
    ),
    ("aclDestroyScalar", "Destroys it.", "销毁。"),
    ("aclCreateScalarList", "A list of scalars.", "创建Scalar列表。"),
    ("aclDestroyScalarList", "Destroys the list, and members that are still alive.", "销毁列表及其仍存活的成员。"),
    ("aclGetScalarListSize", "How many members.", "成员个数。"),
    ("aclCreateIntArray", "An array, copied.", "拷贝为数组。"),
    ("aclDestroyIntArray", "Destroys it.", "销毁。"),
    ("aclGetIntArraySize", "How many.", "元素个数。"),
    ("aclCreateBoolArray", "An array, copied.", "拷贝为数组。"),
    ("aclDestroyBoolArray", "Destroys it.", "销毁。"),
    ("aclGetBoolArraySize", "How many.", "元素个数。"),
    ("aclCreateFloatArray", "An array, copied.", "拷贝为数组。"),
    ("aclDestroyFloatArray", "Destroys it.", "销毁。"),
    ("aclGetFloatArraySize", "How many.", "元素个数。"),
    ("aclSetAclOpExecutorRepeatable", "The executor may run any number of times.", "执行器可重复执行。"),
    (
        "aclDestroyAclOpExecutor",
        "Destroys it; one that ran once is gone already.",
        "销毁执行器；执行一次后会自动销毁。",
    ),
    ("aclSetInputTensorAddr", "Other memory for an input of an executor.", "更换执行器某个输入的地址。"),
    ("aclSetOutputTensorAddr", "Other memory for an output.", "更换输出的地址。"),
    ("aclSetTensorAddr", "Other memory for a tensor, counted over all.", "按全部Tensor的序号更换地址。"),
    ("aclSetDynamicInputTensorAddr", "The same for a member of an input list.", "更换输入列表中某成员的地址。"),
    ("aclSetDynamicOutputTensorAddr", "The same for a member of an output list.", "更换输出列表中某成员的地址。"),
    ("aclSetDynamicTensorAddr", "The same for a member of any list.", "更换任意列表中某成员的地址。"),
)

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
    return [Function(name, True, en, zh) for name, en, zh in _REAL] + stubs()


def operator_functions() -> list[str]:
    """Both phases of every operator."""
    return [name for op in ops.all_ops() for name in (f"{op.name}GetWorkspaceSize", op.name)]


def exported() -> list[str]:
    """Every name that a program can find in the library."""
    return sorted([*(f.name for f in runtime_functions()), *operator_functions()])
