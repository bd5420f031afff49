"""Any case through the C functions, by ctypes from this process: the same engine, so codes, texts and bits compare."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

import aclnn
from aclnn.base.format import Format
from aclnn.base.scalar import Scalar
from aclnn.contract.cases import Case
from aclnn.contract.model import Arg
from tests.doors.toolchain import built

_GUARD = 193  # odd, so that no workspace is aligned
_UNTOUCHED = 0xA5

_BY_VALUE = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int32": ctypes.c_int,
    "int64": ctypes.c_int64,
    "double": ctypes.c_double,
}


@cache
def library() -> ctypes.CDLL:
    """The library, with results that are handles or texts declared as such."""
    lib = ctypes.CDLL(str(built() / "lib64" / "libopapi.so"))
    for kind in ("Tensor", "TensorList", "Scalar", "IntArray", "BoolArray"):
        getattr(lib, f"aclCreate{kind}").restype = ctypes.c_void_p
    lib.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return lib


class CCall:
    """One call: its objects, its executor, and what became of it."""

    def __init__(self, case: Case, filled: dict[str, Any]):
        self.lib, self.case = library(), case
        self.made: list[tuple[str, int]] = []
        self.workspace = np.full(2 * _GUARD, _UNTOUCHED, np.uint8)
        self.size, self.executor = ctypes.c_uint64(0), ctypes.c_void_p()
        self.arguments = [self._argument(a, filled[a.name]) for a in case.op.args]

    def plan(self) -> int:
        phase1 = getattr(self.lib, f"{self.case.op.name}GetWorkspaceSize")
        with aclnn.product(self.case.device):
            return int(phase1(*self.arguments, ctypes.byref(self.size), ctypes.byref(self.executor)))

    def run(self, stream: ctypes.c_void_p | None = None) -> int:
        """Phase 2 with exactly the workspace phase 1 asked for, at an odd address and between guards."""
        self.workspace = np.full(self.size.value + 2 * _GUARD, _UNTOUCHED, np.uint8)
        address = self.workspace.ctypes.data + _GUARD if self.size.value else None
        run = getattr(self.lib, self.case.op.name)
        return int(run(ctypes.c_void_p(address), self.size, self.executor, stream))

    def outcome(self) -> tuple[int, str]:
        """Both phases and the synchronization: the first code that is not 0, and the message."""
        self.message()
        code = self.plan() or self.run() or int(self.lib.aclrtSynchronizeStream(None))
        return code, self.message()

    def message(self) -> str:
        return str(self.lib.aclGetRecentErrMsg().decode())

    def destroy(self) -> None:
        guards = self.workspace[:_GUARD], self.workspace[len(self.workspace) - _GUARD :]
        assert all((guard == _UNTOUCHED).all() for guard in guards), "the workspace was left"
        self.lib.aclDestroyAclOpExecutor(self.executor)
        for kind, handle in self.made:
            assert getattr(self.lib, f"aclDestroy{kind}")(ctypes.c_void_p(handle)) == 0

    def _keep(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        handle = getattr(self.lib, f"aclCreate{kind}")(*arguments)
        assert handle is not None, self.message()
        self.made.append((kind, handle))
        return ctypes.c_void_p(handle)

    def _argument(self, arg: Arg, value: Any) -> Any:
        if arg.kind in _BY_VALUE:
            return _BY_VALUE[arg.kind](value)
        if value is None:
            return ctypes.c_void_p(None)
        if arg.kind == "tensor":
            return self.tensor(arg, value)
        if arg.kind == "tensor_list":
            members = (ctypes.c_void_p * len(value))(*(v and self.tensor(arg, v).value for v in value))
            return self._keep("TensorList", members, ctypes.c_uint64(len(value)))
        if arg.kind == "scalar":
            return self._keep("Scalar", _bits(value), value.dtype.number)
        kind, element = ("IntArray", ctypes.c_int64) if arg.kind == "int_array" else ("BoolArray", ctypes.c_bool)
        return self._keep(kind, (element * len(value))(*value), ctypes.c_uint64(len(value)))

    def tensor(self, arg: Arg, tensor: aclnn.Tensor) -> ctypes.c_void_p:
        spec = tensor.spec
        if spec.format is Format.UNDEFINED:  # Python gives such a tensor the format of its rank
            spec = spec._replace(format=arg.default_format(spec.rank))
        sizes, strides = ((ctypes.c_int64 * spec.rank)(*values) for values in (spec.shape, spec.strides))
        storage = (ctypes.c_int64 * 1)(tensor.owner.size if spec.storage is None else spec.storage)
        rank, one = ctypes.c_uint64(spec.rank), ctypes.c_uint64(1)
        address = ctypes.c_void_p(tensor.owner.ctypes.data)
        view = (sizes, rank, spec.dtype.number, strides, ctypes.c_int64(spec.offset), int(spec.format))
        return self._keep("Tensor", *view, storage, one, address)


def _bits(scalar: Scalar) -> bytes:
    if scalar.dtype.is_complex or scalar.dtype.numpy is None:
        return bytes(16)
    return bytes(np.array(scalar.value).astype(scalar.dtype.numpy).tobytes())
