"""Case files: one call with its tensors in one .npz or .safetensors file.

Tensors are stored by vendor name, the elements of lists as `params.0`, `params.1` …, outputs beside inputs. A JSON text
under `__case__` (in safetensors: in the metadata) says the rest:

{"operator": "aclnnEluBackward", "product": "A2", "attributes": {"alpha": 1.0, …},
 "tensors": {"gradOutput": {"dtype": "bfloat16", "shape": [2, 3], "strides": [1, 2], "offset": 0, "format": "ND"}}}

Everything under `tensors` is optional. With `shape`, `strides` or `offset` the stored array is the storage behind the
view; `dtype` gives raw integers the type they stand for. Of a tensor that the operator updates in place, `selfRef` is
what it wrote and `selfRef.given` what it read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from aclnn import ops
from aclnn.base import device as devices
from aclnn.base import dtype as dtypes
from aclnn.base.device import Device
from aclnn.base.dtype import FLOAT64, INT64, DType
from aclnn.base.format import Format
from aclnn.base.geometry import Array, reach
from aclnn.base.scalar import Scalar, scalar
from aclnn.base.status import invalid
from aclnn.base.tensor import Tensor, TensorSpec
from aclnn.contract.call import Call
from aclnn.contract.check import check
from aclnn.contract.model import HIDDEN, Arg, Op
from aclnn.contract.rows import are_rows, split
from aclnn.golden.read import containers, untrusted
from aclnn.golden.read.containers import Contents
from aclnn.runtime import settings
from aclnn.runtime.operator import Binding

_GIVEN = ".given"


@dataclass(frozen=True)
class Description:
    """What a case is, without its data."""

    operator: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    product: str | None = None
    tensors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def layout(self, name: str) -> Mapping[str, Any]:
        return self.tensors.get(name, {})


@dataclass(frozen=True, eq=False)
class LoadedCase:
    """A valid call with its memory, by vendor name: the inputs as given, and those outputs that were there."""

    op: Op
    call: Call
    given: Mapping[str, Any]
    targets: Mapping[str, Any]


def save_case(
    path: Path, op: Op, call: Call, arrays: Mapping[str, Any], given: Mapping[str, Any] | None = None
) -> None:
    """Writes a call and its tensors (by vendor name, lists as lists) to .npz or .safetensors.

    `given` holds what was read where the operator has since updated it in place.
    """
    stored: dict[str, Array] = {}
    tensors: dict[str, dict[str, Any]] = {}
    for arg in op.tensors:
        if call[arg.name] is None or arrays.get(arg.name) is None:
            continue
        listed = arg.kind == "tensor_list"
        each = zip(call[arg.name], arrays[arg.name], strict=True) if listed else [(call[arg.name], arrays[arg.name])]
        for i, (spec, array) in enumerate(each):
            if array is not None:
                name = f"{arg.name}.{i}" if listed else arg.name
                stored[name], tensors[name] = _stored(spec, array)
        if arg.updated and given is not None:
            name = arg.name + _GIVEN
            stored[name], tensors[name] = _stored(call[arg.name], given[arg.name])
    attributes = {a.name: _to_json(call[a.name]) for a in op.args if not a.is_tensor and call[a.name] is not None}
    described = {"operator": op.name, "product": call.device.key, "attributes": attributes, "tensors": tensors}
    containers.write(Path(path), Contents(stored, json.dumps(described)))


def _stored(spec: TensorSpec, array: Array) -> tuple[Array, dict[str, Any]]:
    """The array to write, and what must be said of it. A strided view gets a storage of its own, zero in the gaps."""
    layout: dict[str, Any] = {"dtype": spec.dtype.name}
    if spec.format is not Format.UNDEFINED:
        layout["format"] = spec.format.name
    if spec.is_contiguous:
        return np.ascontiguousarray(array).reshape(array.shape), layout
    low, high = reach(spec.shape, spec.strides)
    room, offset = (high - low + 1, -low) if spec.storage is None else (spec.storage, spec.offset)
    tensor = Tensor.on(np.zeros(room, array.dtype), spec._replace(storage=room, offset=offset))
    tensor.view[...] = array
    return tensor.owner, layout | {"shape": spec.shape, "strides": spec.strides, "offset": offset}


def _to_json(value: Any) -> Any:
    if not isinstance(value, Scalar):
        return value
    if value.dtype is FLOAT64:
        return value.value
    if value.dtype is INT64:
        return int(value.value)
    return {"dtype": value.dtype.name, "value": value.value}


def load_case(path: Path) -> LoadedCase:
    """The case a file holds, checked against the contract of its operator. Outputs may be missing."""
    path = Path(path)
    contents = containers.read(path)
    if contents.case is None:
        raise invalid(f"{path} has no {containers.CASE_KEY}; without it nobody knows which operator it is a case of.")
    return build(describe(contents.case, path), contents.arrays, path)


def describe(text: str, path: Path) -> Description:
    """The description that a JSON text gives."""
    try:
        found = untrusted.parsed(text)
        if not isinstance(found, dict) or not isinstance(found.get("operator"), str):
            raise ValueError("it must be a JSON object with an operator")
        if not isinstance(found.get("product"), (str, NoneType)):
            raise ValueError(f"its product is {containers.brief(found['product'])}; it must be a name")
        for part in ("attributes", "tensors"):
            if not isinstance(found.get(part, {}), dict):
                raise ValueError(f"its {part} must be a JSON object")
        if not all(isinstance(layout, dict) for layout in found.get("tensors", {}).values()):
            raise ValueError("each of its tensors must be a JSON object")
    except ValueError as error:
        raise invalid(f"{path}: the description of the case cannot be read: {error}.") from None
    return Description(
        found["operator"], found.get("attributes", {}), found.get("product"), dict(found.get("tensors", {}))
    )


def build(described: Description, arrays: Mapping[str, Array], path: Path) -> LoadedCase:
    """The case of a description and the arrays stored for it."""
    op = ops.find(described.operator)
    _refuse_strangers(op, described, arrays, path)
    device = settings.current_product(described.product and devices.find(described.product))
    given: dict[str, Any] = {}
    for arg in op.inputs:
        given[arg.name] = (
            _tensors(arg, described, arrays, path, _GIVEN if arg.updated else "")
            if arg.is_tensor
            else _attribute(op, arg, described, path)
        )
        if arg.is_tensor and given[arg.name] is None and not arg.optional and arg.when is None:
            wanted = arg.name + (_GIVEN if arg.updated else "")
            raise invalid(f"{path} has no tensor {wanted}; {op.name} needs it.", arg.name)
    return bind(op, given, {a.name: _tensors(a, described, arrays, path) for a in op.outputs}, device)


def bind(op: Op, given: Mapping[str, Any], targets: Mapping[str, Any], device: Device) -> LoadedCase:
    """Checks the inputs, then those outputs that are there, against the contract."""
    inputs = Binding(op, {a.name: given.get(a.name) for a in op.inputs}, None, device, "reference")
    values = dict(inputs.plan.call.values)
    found: dict[str, Any] = {}
    for arg in op.outputs:
        fresh, target = values[arg.name], targets.get(arg.name)
        if fresh is None:  # it takes no part, so what is there is not looked at
            found[arg.name] = None
        elif arg.kind == "tensor_list":
            elements = [_fitted(arg, t, f) for t, f in zip(_padded(op, arg, target, fresh), fresh, strict=True)]
            found[arg.name] = [seen(t) for t in elements]
            values[arg.name] = tuple(_spec(arg, t) or f for t, f in zip(elements, fresh, strict=True))
        else:
            target = _fitted(arg, target, fresh)
            if inputs.rows and op.rows and arg.name in op.rows.args:
                target = _in_steps(target, fresh)
            found[arg.name] = seen(target)
            values[arg.name] = _spec(arg, target) or fresh
    call = Call(values, device)
    violation = check(op, call)
    if violation is not None:
        raise violation.error()
    return LoadedCase(op, call, {a.name: inputs.memory[a.name] for a in op.inputs if a.is_tensor}, found)


def _padded(op: Op, arg: Arg, target: Any, fresh: tuple[TensorSpec, ...]) -> list[Any]:
    """A list of outputs in full length, None where one is not there."""
    length = len(fresh)
    if isinstance(target, Mapping):
        beyond = [i for i in target if i >= length]
        if beyond:
            raise invalid(f"{op.name}: {arg.name} has an element {max(beyond)} but only {length} elements.", arg.name)
        return [target.get(i) for i in range(length)]
    return [None] * length if target is None else list(target)


def _fitted(arg: Arg, target: Any, fresh: TensorSpec) -> Any:
    """Bare bytes of an output are what the contract says the output is."""
    if not isinstance(target, np.ndarray) or target.dtype != np.uint8:
        return target
    wanted, dtype = fresh.size * fresh.dtype.itemsize, fresh.dtype.numpy
    if target.size != wanted:
        brief = f"{fresh.dtype} {list(fresh.shape)}"
        raise invalid(f"{arg.name} has {target.size} bytes, but {brief} has {wanted}.", arg.name)
    return target.view(np.dtype(dtype)).reshape(fresh.shape)


def _in_steps(target: Any, fresh: TensorSpec) -> Any:
    """An output that came as rows, like the input of its call, as the contract knows it."""
    spec = target.spec if isinstance(target, Tensor) else None if target is None else _dense_spec(target, "")
    if spec is None or not are_rows(spec, *fresh.shape[:2]):
        return target
    split_rows = split(spec, *fresh.shape[:2])
    return Tensor.on(target.owner, split_rows) if isinstance(target, Tensor) else target.reshape(fresh.shape)


def seen(value: Any) -> Any:
    """The array of a Tensor, as it is seen; anything else as it is."""
    return value.view if isinstance(value, Tensor) else value


def _spec(arg: Arg, value: Any) -> TensorSpec | None:
    """The spec of an output that is there; in files it lies as it lies, so only its reading matters."""
    if value is None:
        return None
    spec = value.spec if isinstance(value, Tensor) else _dense_spec(value, arg.name)
    return spec if spec.format is not Format.UNDEFINED else spec._replace(format=arg.default_format(spec.rank))


def _dense_spec(array: Array, name: str) -> TensorSpec:
    strides = tuple(s // array.itemsize for s in array.strides)
    return TensorSpec(containers.known_dtype(array, name), array.shape, strides)


def _refuse_strangers(op: Op, described: Description, arrays: Mapping[str, Array], path: Path) -> None:
    tensors = {n for a in op.tensors for n in (a.name, a.snake)}
    for name in (*arrays, *described.tensors):
        if name.partition(".")[0] not in tensors:
            shown = ", ".join(a.name for a in op.tensors)
            raise invalid(f"{path} has a tensor {name!r}, which {op.name} has not; its tensors are {shown}.")
    attributes = {n for a in op.inputs if not a.is_tensor for n in (a.name, a.snake)}
    for name in described.attributes:
        if name not in attributes:
            shown = ", ".join(a.name for a in op.inputs if not a.is_tensor)
            raise invalid(f"{path} has an attribute {name!r}, which {op.name} has not; its attributes are {shown}.")


def _attribute(op: Op, arg: Arg, described: Description, path: Path) -> Any:
    for name in (arg.name, arg.snake):
        if name in described.attributes:
            return _from_json(arg, described.attributes[name], path)
    if arg.default is not ...:
        return arg.default
    if arg.optional or arg.when is not None or arg.python == HIDDEN:  # whether it may be missing, the contract says
        return None
    raise invalid(f"{path} has no attribute {arg.name}; {op.name} needs it.", arg.name)


def _from_json(arg: Arg, value: Any, path: Path) -> Any:
    if arg.kind != "scalar" or not isinstance(value, dict):
        return value
    dtype = _named_dtype(value.get("dtype"), arg.name, path)
    if dtype is None or not isinstance(value.get("value"), (bool, int, float)):
        raise invalid(f"{path}: {arg.name} is {value}; it must be a number, or have a dtype and a value.", arg.name)
    return scalar(value["value"], dtype)


def _tensors(arg: Arg, described: Description, arrays: Mapping[str, Array], path: Path, ending: str = "") -> Any:
    """What stands for a tensor argument: an array or Tensor, a list of them, or None. Outputs of a list by index."""
    stored = sum(array.size for array in arrays.values())
    for name in dict.fromkeys((arg.name + ending, arg.snake + ending)):
        if arg.kind == "tensor_list":
            elements = {
                _index(key, path): _tensor(key, arg, described, array, path, stored)
                for key, array in arrays.items()
                if key.startswith(f"{name}.")
            }
            if elements:
                return elements if arg.out else _whole_list(arg, elements, path)
        elif name in arrays:
            return _tensor(name, arg, described, arrays[name], path, stored)
    return None


def _index(key: str, path: Path) -> int:
    index = key.rpartition(".")[2]
    if not (index.isascii() and index.isdigit() and len(index) < 7):
        raise invalid(f"{path} has a tensor {key!r}; the elements of a list are numbered from 0.")
    return int(index)


def _whole_list(arg: Arg, elements: Mapping[int, Any], path: Path) -> list[Any]:
    missing = next((i for i in range(len(elements)) if i not in elements), None)
    if missing is not None:
        raise invalid(f"{path} has no tensor {arg.name}.{missing} but later ones; a list has no holes.", arg.name)
    return [elements[i] for i in range(len(elements))]


def _tensor(name: str, arg: Arg, described: Description, array: Array, path: Path, stored: int) -> Any:
    found = interpret(name, array, described.layout(name), path, stored)
    if isinstance(found, Tensor):
        return Tensor.on(found.owner.copy(), found.spec) if arg.updated else found
    if not arg.given:
        return found
    if found.flags.aligned and found.flags.c_contiguous and found.flags.writeable:
        return found
    return np.array(found, order="C")  # data inside a file starts at any byte, and is not for writing


def interpret(name: str, array: Array, layout: Mapping[str, Any], path: Path, stored: int) -> Any:
    """A stored array as what its layout says: of another dtype, of another shape, or the storage of a Tensor.

    `stored` is how many elements the whole case has: a broadcast tensor stands beside others of full size.
    """
    array = containers.as_dtype(array, _named_dtype(layout.get("dtype"), name, path), name)
    shape = layout.get("shape", array.shape)
    if not isinstance(shape, (list, tuple)) or not all(type(n) is int for n in shape):
        raise invalid(f"{path}: {name} has shape {containers.brief(shape)}; it must be a list of sizes.", name)
    with untrusted.refusals(path):
        if not layout.keys() & {"strides", "offset"}:
            array = _reshaped(name, array, tuple(shape), path)
            if "format" not in layout:
                return array
        storage = array if array.flags.c_contiguous and array.flags.aligned else np.array(array, order="C")
        tensor = Tensor(storage, tuple(shape), layout.get("strides"), layout.get("offset", 0), layout.get("format"))
    untrusted.refuse_repeats(path, name, tensor.spec.shape, stored)
    return tensor


def _reshaped(name: str, array: Array, shape: tuple[int, ...], path: Path) -> Array:
    if math.prod(shape) != array.size or min(shape, default=0) < 0:
        wanted = math.prod(shape) * array.itemsize
        dtype = containers.known_dtype(array, name)
        raise invalid(f"{path}: {name} has {array.nbytes} bytes, but {dtype} {list(shape)} has {wanted}.", name)
    return array.reshape(shape)


def _named_dtype(name: Any, argument: str, path: Path) -> DType | None:
    if name is None:
        return None
    found = dtypes.by_name(name) if isinstance(name, str) else None
    if found is None or found.numpy is None:
        raise invalid(
            f"{path}: {argument} has dtype {name!r}; choose among {', '.join(d.name for d in dtypes.STORED)}."
        )
    return found
