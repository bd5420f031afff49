"""A program for pyACL: device memory, streams, events and the two phases of an operator, all through `import acl`.

aclnn flags --install ~/ascend && . ~/ascend/set_env.sh && python pyacl.py 200
"""

from __future__ import annotations

import sys

import acl
import numpy as np


class Program:
    """A device, a stream, and memory that is given back at the end."""

    def __init__(self) -> None:
        done(acl.init(), "init")
        done(acl.rt.set_device(0), "set_device")
        self.context = value(acl.rt.create_context(0), "create_context")
        self.stream = value(acl.rt.create_stream(), "create_stream")
        self.began, self.ended = (value(acl.rt.create_event(), "create_event") for _ in range(2))
        self.one = value(acl.nn.create_scalar(1.0, acl.ACL_FLOAT), "create_scalar")

    def close(self) -> None:
        done(acl.nn.destroy_scalar(self.one), "destroy_scalar")
        for event in (self.began, self.ended):
            done(acl.rt.destroy_event(event), "destroy_event")
        done(acl.rt.destroy_stream(self.stream), "destroy_stream")
        done(acl.rt.destroy_context(self.context), "destroy_context")
        done(acl.rt.reset_device(0), "reset_device")
        done(acl.finalize(), "finalize")

    def elu_backward(self, grad: np.ndarray, result: np.ndarray) -> np.ndarray:
        """aclnnEluBackward given the result of the forward; alpha, scale and inputScale are 1."""
        memory = [self.upload(grad), self.upload(result), value(acl.rt.malloc(grad.nbytes, 0), "malloc")]
        tensors = [value(acl.nn.create_tensor(grad.shape, acl.ACL_FLOAT, ptr), "create_tensor") for ptr in memory]
        one, (g, r, out) = self.one, tensors
        size, executor, ret = acl.nn.get_workspace_size("aclnnEluBackward", g, one, one, one, True, r, out)
        done(ret, "aclnnEluBackwardGetWorkspaceSize")
        done(acl.rt.record_event(self.began, self.stream), "record_event")
        done(acl.nn.execute("aclnnEluBackward", 0, size, executor, self.stream), "aclnnEluBackward")
        done(acl.rt.record_event(self.ended, self.stream), "record_event")
        for tensor in tensors:  # the stream may not have run yet
            done(acl.nn.destroy_tensor(tensor), "destroy_tensor")
        done(acl.rt.synchronize_event(self.ended), "synchronize_event")
        found = self.download(memory[2], grad)
        for ptr in memory:
            done(acl.rt.free(ptr), "free")
        return found

    def upload(self, array: np.ndarray) -> int:
        ptr = value(acl.rt.malloc(array.nbytes, acl.ACL_MEM_MALLOC_HUGE_FIRST), "malloc")
        host = acl.util.numpy_to_ptr(array)
        copied = acl.rt.memcpy(ptr, array.nbytes, host, array.nbytes, acl.ACL_MEMCPY_HOST_TO_DEVICE)
        done(copied, "memcpy")
        return ptr

    def download(self, ptr: int, like: np.ndarray) -> np.ndarray:
        host = value(acl.rt.malloc_host(like.nbytes), "malloc_host")
        kind = acl.ACL_MEMCPY_DEVICE_TO_HOST
        done(acl.rt.memcpy_async(host, like.nbytes, ptr, like.nbytes, kind, self.stream), "memcpy_async")
        done(acl.rt.synchronize_stream(self.stream), "synchronize_stream")
        found = acl.util.ptr_to_numpy(host, like.shape, like.dtype.num).copy()
        done(acl.rt.free_host(host), "free_host")
        return found


def done(ret: int, what: str) -> None:
    if ret != acl.ACL_SUCCESS:
        raise SystemExit(f"{what} answered {ret}: {acl.get_recent_err_msg()}")


def value(made: tuple[int, int], what: str) -> int:
    done(made[1], what)
    return made[0]


def main(calls: int) -> int:
    program, right, rng = Program(), 0, np.random.default_rng(1)
    for number in range(calls):
        grad, result = rng.uniform(-0.9, 0.9, (2, 3 + number % 7, 5)).astype(np.float32)
        expected = np.where(result > 0, grad, grad * (result + 1))
        right += bool(np.allclose(program.elu_backward(grad, result), expected, rtol=1e-6, atol=0))
    milliseconds, ret = acl.rt.event_elapsed_time(program.began, program.ended)
    done(ret, "event_elapsed_time")
    program.close()
    print(f"{right} of {calls} calls right")
    return 0 if right == calls and milliseconds >= 0 else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
