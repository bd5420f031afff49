"""Calls whose like was made before, without Python: node.cpp, compiled once against the PyTorch that is installed.

Who has not built it has the same results from Python, some microseconds later.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import sysconfig
import tempfile
from contextlib import suppress
from functools import partial
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch

from aclnn.base.folder import PrivateFolder, root
from aclnn.base.status import AclnnError, Status, reason
from aclnn.capi import build as c_library
from aclnn.capi.engine import BoundPlan
from aclnn.kernels.registry import forgetters
from aclnn.runtime import settings
from aclnn.runtime.familiar_calls import recall
from aclnn.runtime.plan import Plan
from aclnn.torch import direct
from aclnn.torch.gradients import DERIVATIVES, gradients_of, under

NAME = "aclnn_torch_node"
SOURCE = Path(__file__).with_name("node.cpp")
COMPILE = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared")
LARGE = 2**20  # bytes of outputs or workspace: Python sees to such memory, and its microseconds do not count
_FOLDER = "torch"


def build() -> None:
    """Compiles what makes small calls without Python, and uses it from now on. It takes a C++ compiler and half a
    minute, once per PyTorch: every `import aclnn.torch` to come finds it in the cache."""
    if direct.again is not None:
        return
    installed = Path(torch.__file__).parent
    folders = [*c_library.SOURCES, *c_library.INCLUDES, installed / "include", sysconfig.get_paths()["include"]]
    folders.append(installed / "include" / "torch" / "csrc" / "api" / "include")
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / NAME
        libraries = (f"-L{installed / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10")
        command = *COMPILE, abi, *(f"-I{folder}" for folder in folders), str(SOURCE), "-o", str(made), *libraries
        c_library.run([*c_library.compiler(), *command])
        try:
            PrivateFolder(_FOLDER).write(_file_name(), made.read_bytes())
        except OSError as error:
            text = f"what was built for PyTorch cannot be kept: {reason(error)}."
            raise AclnnError(Status.ACLNN_ERR_INNER, text) from error
    use_what_is_built()


def use_what_is_built() -> None:
    """From now on, if there is anything."""
    if direct.again is None and sys.platform == "linux":
        with suppress(OSError, ImportError):
            _join(_load())


def _load() -> Any:
    """Raises OSError if nothing is built, or if others may have written it."""
    folder = root() / _FOLDER
    folder.stat()  # nobody waits for one to be made
    home, name = PrivateFolder(_FOLDER), _file_name()
    home.read(name)  # for what it refuses
    with home.opened() as descriptor:  # which stays right whoever renames what is above it
        path = f"/proc/{os.getpid()}/fd/{descriptor}/{name}"
        spec = spec_from_file_location(NAME, path, loader=ExtensionFileLoader(NAME, path))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def _join(node: Any) -> None:
    node.start(settings.variable, ctypes.addressof(settings.ever_entered), partial(_teach, node.learn))
    forgetters.append(node.forget)
    os.register_at_fork(after_in_child=node.after_fork)
    direct.again = node.again


def _file_name() -> str:
    """It says all that the file depends on."""
    sources = SOURCE, *sorted(path for folder in c_library.SOURCES for path in folder.glob("*.h"))
    about = torch.__version__, torch.version.git_version, sys.implementation.cache_tag, COMPILE
    digest = hashlib.sha256(repr((about, [path.read_bytes() for path in sources])).encode())
    return f"torch{torch.__version__}-{digest.hexdigest()[:16]}.so"


def _teach(learn: Any, name: str, tensors: tuple[Any, ...], attributes: tuple[Any, ...]) -> None:
    """Tells node.cpp how a call is made, if its like was made before."""
    known = recall(direct.OPERATORS[name].op, tensors, attributes)
    if known is None:
        return
    plan = known.cached.plan
    bound = BoundPlan(known.cached, 0.0)
    derivative = _derivative(name, tensors, attributes)
    native = bound.native if _is_small(plan) and derivative is not None else None
    address = 0 if native is None else native.address  # 0: it stays with Python
    call = name, tensors, attributes, address, plan.workspace_size
    fresh = [plan.call[arg.name] for arg in plan.op.fresh]
    outputs = tuple(None if s is None else (getattr(torch, s.dtype.name), s.shape) for s in fresh)
    owner = bound, settings.context()
    learn(*call, outputs, _order(plan), owner, *(derivative or ()))


def _is_small(plan: Plan) -> bool:
    made = sum(s.size * s.dtype.itemsize for arg in plan.op.fresh for s in plan.call.specs(arg.name))
    return max(made, plan.workspace_size) <= LARGE


def _order(plan: Plan) -> tuple[int, ...]:
    """The numbers of tensors in the order of the contract: inputs, then outputs; −1 for one that takes no part."""
    names = [*(arg.name for arg in plan.op.inputs if arg.is_tensor), *(arg.name for arg in plan.op.fresh)]
    used = zip(plan.op.tensors, plan.taking_part, strict=True)
    return tuple(names.index(a.name) if on and plan.call[a.name] is not None else -1 for a, on in used)


def _derivative(name: str, tensors: tuple[Any, ...], attributes: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What node.cpp must know of it; nothing where none is asked for, None where there is none."""
    needs = [tensor is not None and tensor.requires_grad for tensor in tensors]
    if not (torch.is_grad_enabled() and any(needs)):
        return ()
    derivative = DERIVATIVES.get(name)
    if derivative is None:
        return None
    others = derivative.attributes(attributes, tensors, needs)
    context = settings.context()

    def in_python(given: tuple[Any, ...]) -> list[Any]:
        found: list[Any] = under(context, gradients_of, derivative, given, others)
        return found

    return derivative.learning, derivative.kept, derivative.backward, others, derivative.gradients, in_python
