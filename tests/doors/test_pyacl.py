"""The `acl` module of an installed prefix: what it answers, and that the wheel does not bring it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

import pytest

from tests.doors import installed
from tests.doors.toolchain import needs_compiler

pytestmark = needs_compiler

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "clients" / "pyacl.py"


def run(code: str, python: str = sys.executable, **env: str) -> str:
    """What a program prints that knows nothing but the prefix."""
    surroundings = installed.sourced(installed.prefix(), **env)
    ended = subprocess.run([python, "-c", code], env=surroundings, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout


def test_the_example_is_right() -> None:
    env = installed.sourced(installed.prefix(), ACLNN_CHECK="1")
    ended = subprocess.run([sys.executable, str(PROGRAM), "60"], env=env, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "60 of 60 calls right\n", "")


def test_without_the_prefix_there_is_no_such_module() -> None:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-c", "import aclnn, importlib.util as u; print(u.find_spec('acl'))"]
    env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2] / "src")
    assert subprocess.run(command, env=env, capture_output=True, text=True).stdout == "None\n"


RUNTIME = """
import acl
assert acl.rt.get_device()[1] == acl.ACL_ERROR_RT_CONTEXT_NULL and "no device" in acl.get_recent_err_msg()
assert (acl.finalize(), acl.init(), acl.init(), acl.init("/no/file")) == (100001, 0, 100002, 100000)
assert acl.rt.set_device(7) == 107001 and acl.rt.set_device(1) == 0 and acl.rt.get_device() == (1, 0)
assert acl.rt.get_device_count() == (2, 0) and acl.rt.get_run_mode() == (acl.ACL_HOST, 0)
assert acl.get_version()[1] == 0 and acl.get_soc_name() == "Ascend910B1" == acl.rt.get_soc_name()
free, total, ret = acl.rt.get_mem_info(acl.ACL_HBM_MEM)
assert 0 < free <= total and ret == 0
context, ret = acl.rt.create_context(0)
assert ret == 0 and acl.rt.get_context() == (context, 0) and acl.rt.set_context(context) == 0
stream, ret = acl.rt.create_stream()
assert ret == 0 and 0 < stream < 2**63 and acl.rt.stream_query(stream) == (0, 0)
began, ended = acl.rt.create_event()[0], acl.rt.create_event_with_flag(acl.ACL_EVENT_TIME_LINE)[0]
assert acl.rt.event_elapsed_time(began, ended)[1] == 107000
device, host = acl.rt.malloc(16, acl.ACL_MEM_MALLOC_NORMAL_ONLY)[0], acl.rt.malloc_host(16)[0]
assert acl.rt.record_event(began, stream) == 0
assert acl.rt.memset(device, 16, 65, 16) == 0 and acl.rt.memset_async(device, 16, 66, 8, stream) == 0
assert acl.rt.memcpy_async(host, 16, device, 16, acl.ACL_MEMCPY_DEVICE_TO_HOST, stream) == 0
assert acl.rt.record_event(ended, stream) == 0 and acl.rt.stream_wait_event(stream, ended) == 0
assert acl.rt.synchronize_event(ended) == 0 and acl.rt.synchronize_stream_with_timeout(stream, 9999) == 0
assert acl.rt.synchronize_stream(stream) == 0 and acl.rt.synchronize_device() == 0
assert acl.rt.query_event(ended) == (0, 0) and acl.rt.query_event_status(ended) == (1, 0)
assert acl.rt.event_elapsed_time(began, ended)[0] >= 0
assert acl.util.ptr_to_bytes(host, 16) == b"B" * 8 + b"A" * 8
words = b"hello, device!!!"
assert acl.rt.memcpy(device, 16, acl.util.bytes_to_ptr(words), 16, 1) == 0
assert acl.util.ptr_to_bytes(device, 16) == words
assert acl.rt.memcpy(device, 8, host, 16, 1) == 107000 and "destMax" in acl.get_recent_err_msg()
assert (acl.rt.free(device), acl.rt.free(device), acl.rt.free_host(host), acl.rt.free(None)) == (0, 100000, 0, 100000)
assert acl.rt.malloc(0, 0) == (0, 100000)
assert [acl.rt.destroy_event(e) for e in (began, ended, began, stream)] == [0, 0, 0, 100000]
assert [acl.rt.destroy_stream(stream) for _ in range(2)] == [0, 0] and acl.rt.synchronize_stream(stream) == 100000
assert acl.rt.destroy_context(context) == 0 and acl.rt.reset_device(1) == 0 and acl.finalize() == 0
print("fine")
"""


def test_the_runtime() -> None:
    assert run(RUNTIME) == "fine\n"


VERSIONS = [v for v in ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13") if not sys.version.startswith(v + ".")]


def another_python(version: str) -> str:
    """A Python of another version than the engine's."""
    found = [shutil.which(f"python{version}"), *glob(f"{Path.home()}/.pyenv/versions/{version}.*/bin/python")]
    for python in filter(None, found):
        ended = subprocess.run([python, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
        if ended.stdout.startswith(version + "."):
            return python
    pytest.skip(f"there is no Python {version} here")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_runtime_in_another_python(version: str) -> None:
    assert run(RUNTIME, another_python(version)) == "fine\n"


OPERATOR = """
import acl
scalar = acl.nn.create_scalar(1.0, acl.ACL_FLOAT)[0]
tensor = acl.nn.create_tensor((2,), acl.ACL_FLOAT, 0)[0]
print(acl.nn.get_workspace_size("aclnnInplaceElu", tensor, scalar, scalar, scalar)[2], acl.get_recent_err_msg())
"""

OPERATORS = """
import acl, array, threading
one = acl.nn.create_scalar(1.0, acl.ACL_FLOAT)[0]
def device(values):
    data = array.array("f", values)
    ptr = acl.rt.malloc(4 * len(data), 0)[0]
    assert acl.rt.memcpy(ptr, 4 * len(data), data.buffer_info()[0], 4 * len(data), acl.ACL_MEMCPY_HOST_TO_DEVICE) == 0
    return ptr
def host(ptr, count):
    return list(array.array("f", acl.util.ptr_to_bytes(ptr, 4 * count)))
def run(stream, op, *given):
    size, executor, ret = acl.nn.get_workspace_size(op, *given)
    if ret: return ret
    workspace = acl.rt.malloc(size, 0)[0] if size else None
    ret = acl.nn.execute(op, workspace, size, executor, stream) or acl.rt.synchronize_stream(stream)
    if size: acl.rt.free(workspace)
    return ret
acl.init(); acl.rt.set_device(0)
stream = acl.rt.create_stream()[0]
y, g, out = device([-0.5, 1.0, -0.25, 2.0]), device([2.0, 3.0, 4.0, 5.0]), device([9.0] * 8)
dense = [acl.nn.create_tensor((2, 2), acl.ACL_FLOAT, p)[0] for p in (g, y)]
apart = acl.nn.create_tensor((2, 2), acl.ACL_FLOAT, out, strides=(4, 2), storage=(8,))[0]
for _ in range(50):
    ret = run(stream, "aclnnEluBackward", dense[0], one, one, one, True, dense[1], apart)
    assert ret == 0, acl.get_recent_err_msg()
assert host(out, 8) == [1.0, 9.0, 3.0, 9.0, 3.0, 9.0, 5.0, 9.0], host(out, 8)
assert run(stream, "aclnnInplaceElu", dense[1], one, one, one) == 0
assert abs(host(y, 4)[0] - (2.718281828 ** -0.5 - 1)) < 1e-6 and host(y, 4)[1] == 1.0
assert run(stream, "aclnnEluBackward", dense[0], one, one, one, True, dense[1], dense[0]) == 0  # the same view
assert run(stream, "aclnnEluBackward", dense[0], None, one, one, True, dense[1], apart) == 161001
assert "alpha is null" in acl.get_recent_err_msg()
grad_bias = device([0.0] * 2)
def tensor(shape, ptr): return acl.nn.create_tensor(shape, acl.ACL_FLOAT, ptr, acl.ACL_FORMAT_NCHW)[0]
mask = acl.nn.create_bool_array([True, True, True])[0]
ones, none, two = (acl.nn.create_int_array(v)[0] for v in ([1, 1], [0, 0], [2]))
shapes = (1, 2, 1, 1), (1, 2, 3, 3), (2, 2, 3, 3)
given = [tensor(s, device([1.0] * n)) for s, n in zip(shapes, (2, 18, 36))]
memory = [device([0.0] * n) for n in (18, 36)]
outs = [*map(tensor, shapes[1:], memory), acl.nn.create_tensor((2,), acl.ACL_FLOAT, grad_bias)[0]]
ret = run(stream, "aclnnConvolutionBackward", *given, two, ones, none, ones, False, none, 1, mask, 0, *outs)
assert ret == 0, acl.get_recent_err_msg()
assert host(memory[0], 18) == [2.0] * 18 and host(memory[1], 36) == [1.0] * 36 and host(grad_bias, 2) == [1.0, 1.0]
wrong = []
def work():
    acl.rt.set_device(0)
    stream = acl.rt.create_stream()[0]
    a, b, c = device([-0.5] * 5000), device([2.0] * 5000), device([0.0] * 5000)
    t = [acl.nn.create_tensor((5000,), acl.ACL_FLOAT, p)[0] for p in (b, a, c)]
    for _ in range(20):
        if run(stream, "aclnnEluBackward", t[0], one, one, one, True, t[1], t[2]) or host(c, 5000) != [1.0] * 5000:
            wrong.append(acl.get_recent_err_msg())
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong[0]
print("fine")
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_operators_in_another_python(version: str) -> None:
    """Nothing of ours is installed there; what lies between the elements of a result stays as it was."""
    assert run(OPERATORS, another_python(version)) == "fine\n"


def test_operators_in_the_same_python() -> None:
    assert run(OPERATORS) == "fine\n"


def test_an_operator_in_the_same_python_needs_nothing_but_the_prefix() -> None:
    sources = str(Path(__file__).resolve().parents[2] / "src")
    for env in (
        {},
        {"PYTHONPATH": sources},
    ):  # there on the path alone, our package does not make this Python the engine's
        assert run(OPERATOR, **env) == "0 \n"


CALLBACKS = """
import acl
seen, going = [], [True]
def loop(timeout):
    while going[0]:
        acl.rt.process_report(timeout)
acl.init(); acl.rt.set_device(0)
stream, _ = acl.rt.create_stream()
thread, ret = acl.util.start_thread(loop, 20)
assert ret == 0 and acl.rt.subscribe_report(thread, stream) == 0
for i in range(50):
    assert acl.rt.launch_callback(seen.append, i, acl.ACL_CALLBACK_BLOCK, stream) == 0
assert acl.rt.synchronize_stream(stream) == 0
assert acl.rt.unsubscribe_report(thread, stream) == 0
assert acl.rt.launch_callback(seen.append, 99, 0, stream) == 107000
going[0] = False
assert (acl.util.stop_thread(thread), acl.util.stop_thread(thread)) == (0, 100000)
assert seen == list(range(50)), seen
print("fine")
"""


def test_callbacks() -> None:
    assert run(CALLBACKS) == "fine\n"


MISTAKES = """
import acl, numpy as np
def raised(kind, work, *given):
    try:
        work(*given)
    except kind as error:
        return str(error)
    raise AssertionError(f"{work} took {given}")
assert "offline models" in raised(acl.NotSupportedError, acl.mdl.load_from_file, "x")
assert "acl.op.execute" in raised(acl.NotSupportedError, acl.op.execute, 1, 2)
assert "acl.rt.no_such" in raised(acl.NotSupportedError, acl.rt.no_such)
assert "must be an integer" in raised(TypeError, acl.rt.malloc, "many", 0)
assert "device_id" in raised(TypeError, acl.rt.set_device, 1.5)
assert "2**64" in raised(ValueError, acl.rt.free, -1)
assert "32 bits" in raised(ValueError, acl.rt.set_device, 2**40)
assert "contiguous" in raised(ValueError, acl.util.numpy_to_ptr, np.ones((4, 4))[:, ::2])
assert "numpy array" in raised(TypeError, acl.util.numpy_to_ptr, [1, 2])
assert "takes bytes" in raised(TypeError, acl.util.bytes_to_ptr, "text")
assert "no memory" in raised(ValueError, acl.util.ptr_to_bytes, 0, 4)
assert "no memory" in raised(ValueError, acl.util.ptr_to_numpy, 0, (2,), 11)
assert "dtype.num" in raised(ValueError, acl.util.ptr_to_numpy, 4096, (2,), 999)
assert "there is no operator 'aclnnAdd'" in raised(ValueError, acl.nn.get_workspace_size, "aclnnAdd")
assert "takes 5 arguments, not 1" in raised(TypeError, acl.nn.get_workspace_size, "aclnnElu", 0)
assert acl.nn.get_workspace_size("aclnnElu", 0, 0, 0, 0, 0)[2] == 161001 and "self is null" in acl.get_recent_err_msg()
assert acl.nn.create_tensor([2, -1], acl.ACL_FLOAT, 0) == (0, 100000) and "viewDims" in acl.get_recent_err_msg()
assert acl.nn.destroy_tensor(4096) == 161002 and acl.nn.destroy_tensor(None) == 0
assert acl.nn.execute("aclnnElu", 0, 0, 77, None) == 561000
assert acl.nn.execute("aclnnElu", 0, 0, None, None) == 161001
assert acl.nn.create_int_array([1, 2])[1] == 0 == acl.nn.create_bool_array([True])[1]
tensor, _ = acl.nn.create_tensor((2,), acl.ACL_BF16, 0)
both, ret = acl.nn.create_tensor_list([tensor, 0])
assert ret == 0 and acl.nn.destroy_tensor_list(both) == 0 == acl.nn.destroy_tensor(tensor)
print("fine")
"""


def test_mistakes_have_a_sentence_and_no_crash() -> None:
    assert run(MISTAKES) == "fine\n"


def test_a_broken_prefix_says_what_is_missing(tmp_path: Path) -> None:
    shutil.copytree(installed.prefix() / "python", tmp_path / "python")
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libascendcl.so").write_text("no library")
    env = {"PYTHONPATH": str(tmp_path / "python" / "site-packages")}
    ended = subprocess.run([sys.executable, "-c", "import acl"], env=env, capture_output=True, text=True)
    assert "acl: the library cannot be loaded" in ended.stderr
