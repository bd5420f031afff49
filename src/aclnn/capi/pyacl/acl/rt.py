"""Devices, contexts, streams, events, memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ._library import SUCCESS, NotSupportedError, address, call, code, made, signed, size

_HOST_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_waiting: dict[int, Any] = {}  # callbacks that were launched and have not run: the library holds their addresses only


def set_device(device_id: int) -> int:
    return code("aclrtSetDevice", signed(device_id, "device_id"))


def reset_device(device_id: int) -> int:
    return code("aclrtResetDevice", signed(device_id, "device_id"))


def get_device() -> tuple[int, int]:
    return _read("aclrtGetDevice", ctypes.c_int32())


def get_device_count() -> tuple[int, int]:
    return _read("aclrtGetDeviceCount", ctypes.c_uint32())


def get_run_mode() -> tuple[int, int]:
    return _read("aclrtGetRunMode", ctypes.c_int())


def get_version() -> tuple[int, int, int, int]:
    """(major, minor, patch, ret)."""
    numbers = [ctypes.c_int32() for _ in range(3)]
    ret = code("aclrtGetVersion", *map(ctypes.byref, numbers))
    major, minor, patch = (number.value for number in numbers)
    return major, minor, patch, ret


def get_soc_name() -> str:
    return str(call("aclrtGetSocName", result=ctypes.c_char_p).decode())


def create_context(device_id: int) -> tuple[int, int]:
    return made("aclrtCreateContext", signed(device_id, "device_id"))


def destroy_context(context: int) -> int:
    return code("aclrtDestroyContext", address(context, "context"))


def set_context(context: int) -> int:
    return code("aclrtSetCurrentContext", address(context, "context"))


def get_context() -> tuple[int, int]:
    return made("aclrtGetCurrentContext")


def create_stream() -> tuple[int, int]:
    return made("aclrtCreateStream")


def create_stream_with_config(priority: int, flag: int) -> tuple[int, int]:
    return made("aclrtCreateStreamWithConfig", signed(priority, "priority"), signed(flag, "flag"))


def destroy_stream(stream: int) -> int:
    return code("aclrtDestroyStream", address(stream, "stream"))


def synchronize_stream(stream: int) -> int:
    return code("aclrtSynchronizeStream", address(stream, "stream"))


def synchronize_stream_with_timeout(stream: int, timeout: int) -> int:
    return code("aclrtSynchronizeStreamWithTimeout", address(stream, "stream"), signed(timeout, "timeout"))


def stream_query(stream: int) -> tuple[int, int]:
    status = ctypes.c_int()
    ret = code("aclrtStreamQuery", address(stream, "stream"), ctypes.byref(status))
    return status.value, ret


def synchronize_device() -> int:
    return code("aclrtSynchronizeDevice")


def stream_wait_event(stream: int, event: int) -> int:
    return code("aclrtStreamWaitEvent", address(stream, "stream"), address(event, "event"))


def create_event() -> tuple[int, int]:
    return made("aclrtCreateEvent")


def create_event_with_flag(flag: int) -> tuple[int, int]:
    return made("aclrtCreateEventWithFlag", signed(flag, "flag"))


def destroy_event(event: int) -> int:
    return code("aclrtDestroyEvent", address(event, "event"))


def record_event(event: int, stream: int) -> int:
    return code("aclrtRecordEvent", address(event, "event"), address(stream, "stream"))


def synchronize_event(event: int) -> int:
    return code("aclrtSynchronizeEvent", address(event, "event"))


def query_event(event: int) -> tuple[int, int]:
    """0 is complete, 1 is not ready."""
    return _asked("aclrtQueryEvent", event)


def query_event_status(event: int) -> tuple[int, int]:
    """0 is not ready, 1 is complete."""
    return _asked("aclrtQueryEventStatus", event)


def event_elapsed_time(start: int, end: int) -> tuple[float, int]:
    """Milliseconds between two events."""
    time = ctypes.c_float()
    ret = code("aclrtEventElapsedTime", ctypes.byref(time), address(start, "start"), address(end, "end"))
    return time.value, ret


def malloc(nbytes: int, policy: int = 0) -> tuple[int, int]:
    return made("aclrtMalloc", size(nbytes, "size"), signed(policy, "policy"))


def free(ptr: int) -> int:
    return code("aclrtFree", address(ptr, "ptr"))


def malloc_host(nbytes: int) -> tuple[int, int]:
    return made("aclrtMallocHost", size(nbytes, "size"))


def free_host(ptr: int) -> int:
    return code("aclrtFreeHost", address(ptr, "ptr"))


def memcpy(dst: int, dest_max: int, src: int, count: int, kind: int) -> int:
    return code("aclrtMemcpy", *_copied(dst, dest_max, src, count, kind))


def memcpy_async(dst: int, dest_max: int, src: int, count: int, kind: int, stream: int) -> int:
    return code("aclrtMemcpyAsync", *_copied(dst, dest_max, src, count, kind), address(stream, "stream"))


def memset(ptr: int, max_count: int, value: int, count: int) -> int:
    return code("aclrtMemset", *_filled(ptr, max_count, value, count))


def memset_async(ptr: int, max_count: int, value: int, count: int, stream: int) -> int:
    return code("aclrtMemsetAsync", *_filled(ptr, max_count, value, count), address(stream, "stream"))


def get_mem_info(attr: int) -> tuple[int, int, int]:
    """(free, total, ret), in bytes."""
    free_bytes, total = ctypes.c_size_t(), ctypes.c_size_t()
    ret = code("aclrtGetMemInfo", signed(attr, "attr"), ctypes.byref(free_bytes), ctypes.byref(total))
    return free_bytes.value, total.value, ret


def subscribe_report(thread_id: int, stream: int) -> int:
    return code("aclrtSubscribeReport", ctypes.c_uint64(thread_id), address(stream, "stream"))


def unsubscribe_report(thread_id: int, stream: int) -> int:
    return code("aclrtUnSubscribeReport", ctypes.c_uint64(thread_id), address(stream, "stream"))


def process_report(timeout: int) -> int:
    return code("aclrtProcessReport", signed(timeout, "timeout"))


def launch_callback(function: Callable[[Any], Any], user_data: Any, block_type: int, stream: int) -> int:
    """Runs function(user_data) in the thread that subscribed to the stream."""
    if not callable(function):
        raise TypeError(f"function is {function!r}; it must be callable")

    def run(_: Any) -> None:
        try:
            function(user_data)
        finally:
            _waiting.pop(id(thunk), None)

    thunk = _HOST_CALLBACK(run)
    _waiting[id(thunk)] = thunk
    ret = code("aclrtLaunchCallback", thunk, None, signed(block_type, "block_type"), address(stream, "stream"))
    if ret != SUCCESS:
        _waiting.pop(id(thunk), None)
    return ret


def _read(name: str, place: Any) -> tuple[int, int]:
    ret = code(name, ctypes.byref(place))
    return place.value, ret


def _asked(name: str, event: int) -> tuple[int, int]:
    status = ctypes.c_int()
    ret = code(name, address(event, "event"), ctypes.byref(status))
    return status.value, ret


def _copied(dst: int, dest_max: int, src: int, count: int, kind: int) -> tuple[Any, ...]:
    bounds = size(dest_max, "dest_max"), address(src, "src"), size(count, "count")
    return address(dst, "dst"), *bounds, signed(kind, "kind")


def _filled(ptr: int, max_count: int, value: int, count: int) -> tuple[Any, ...]:
    return address(ptr, "ptr"), size(max_count, "max_count"), signed(value, "value"), size(count, "count")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(*given: Any, **named: Any) -> Any:
        raise NotSupportedError(f"acl.rt.{name}: it is not part of this library.")

    return refuse
