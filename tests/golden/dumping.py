"""Dumps in the format of msprobe, written here: results are those of the float64 reference, rounded as a device does.

Files of tensors are zips with a pickle like torch.save makes them, or .npy; no PyTorch is needed.
"""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import aclnn
from aclnn.golden.result import DumpComparison

Array = np.ndarray[Any, Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
_NAMES = {"float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "float64": "Double", "int64": "Long"}


def pt_bytes(array: Array, strides: Sequence[int] | None = None) -> bytes:
    """The data.pkl of one tensor, instruction by instruction."""

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    def numbers(values: Sequence[int]) -> bytes:
        return b"(" + b"".join(map(number, values)) + b"t"

    strides = [s // array.itemsize for s in array.strides] if strides is None else strides
    kind = f"ctorch\n{_NAMES[array.dtype.name]}Storage\n".encode()
    storage = b"(" + text("storage") + kind + text("0") + text("cpu") + number(array.size) + b"tQ"
    empty = b"ccollections\nOrderedDict\n)R"
    head = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
    return head + storage + number(0) + numbers(array.shape) + numbers(strides) + b"\x89" + empty + b"tR."


def save_pt(path: Path, array: Array, data_pkl: bytes | None = None) -> None:
    array = np.ascontiguousarray(array).reshape(array.shape)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        packed.writestr(f"{path.stem}/data.pkl", pt_bytes(array) if data_pkl is None else data_pkl)
        packed.writestr(f"{path.stem}/byteorder", "little")
        packed.writestr(f"{path.stem}/data/0", array.tobytes())
        packed.writestr(f"{path.stem}/version", "3\n")


def save(path: Path, array: Array) -> None:
    if path.suffix == ".npy":
        np.save(path, array.view(np.uint16) if array.dtype == BF16 else array)
    else:
        save_pt(path, array)


class DumpWriter:
    """Collects calls and writes them; gradients come in reverse order, as a backward pass has them."""

    def __init__(self, folder: Path, suffix: str = ".pt", seed: int = 0):
        self.folder, self.suffix, self.random = folder, suffix, np.random.default_rng(seed)
        self.forwards: dict[str, Any] = {}
        self.backwards: list[dict[str, Any]] = []
        self.parents: dict[str, str | None] = {}
        self.lines: dict[str, int] = {}
        (folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)

    def draw(self, *shape: int, dtype: Any = np.float32, scale: float = 1.0) -> Array:
        found: Array = (scale * self.random.standard_normal(shape)).astype(dtype)
        return found

    def tensor(self, name: str, array: Array | None, requires_grad: bool = True) -> Any:
        if array is None:
            return None
        file = name + self.suffix
        save(self.folder / "dump_tensor_data" / file, array)
        wide = array.astype(np.float64)
        numbers = {"Max": wide.max(), "Min": wide.min(), "Mean": wide.mean(), "Norm": float(np.linalg.norm(wide))}
        told = {"type": "torch.Tensor", "dtype": f"torch.{array.dtype.name}", "shape": list(array.shape)}
        return {**told, **numbers, "requires_grad": requires_grad, "data_name": file}

    def value(self, name: str, value: Any, requires_grad: bool = True) -> Any:
        if isinstance(value, np.ndarray):
            return self.tensor(name, value, requires_grad)
        if isinstance(value, (list, tuple)):
            return [self.value(f"{name}.{i}", one, requires_grad) for i, one in enumerate(value)]
        return None if value is None else {"type": type(value).__name__, "value": value}

    def function(
        self, name: str, args: Sequence[Any], output: Array, grad: Array, grads: Sequence[Array | None], **more: Any
    ) -> None:
        """A call of a function; `more` are keyword arguments, and what asks for a gradient as `learns`."""
        learns = more.pop("learns", [True] * len(args))
        listed = [self.value(f"{name}.forward.input.{i}", a, learns[i]) for i, a in enumerate(args)]
        named = {k: self.value(f"{name}.forward.input.{k}", v) for k, v in more.items()}
        result = [self.tensor(f"{name}.forward.output.0", output)]
        self.forwards[f"{name}.forward"] = {"input_args": listed, "input_kwargs": named, "output": result}
        self.lines[f"{name}.forward"] = 10 + len(self.lines)
        outputs = [self.tensor(f"{name}.backward.output.{i}", g) for i, g in enumerate(grads)]
        back = {"input": [self.tensor(f"{name}.backward.input.0", grad)], "output": outputs}
        self.backwards.append({f"{name}.backward": back})

    def module(self, name: str, number: int, args: Sequence[Any], output: Any, parameters: dict[str, Array]) -> None:
        full = f"{name}.forward.{number}"
        listed = [self.value(f"{full}.input.{i}", a) for i, a in enumerate(args)]
        stored = {n: self.tensor(f"{full}.parameters.{n}", p) for n, p in parameters.items()}
        results = [self.value(f"{full}.output.{i}", o) for i, o in enumerate(output)]
        told = {"input_args": listed, "input_kwargs": {}, "output": results, "parameters": stored}
        self.forwards[full] = told
        self.lines[full] = 10 + len(self.lines)

    def module_backward(self, name: str, number: int, grads: Sequence[Any], outputs: Sequence[Array]) -> None:
        full = f"{name}.backward.{number}"
        back = {
            "input": [self.value(f"{full}.input.{i}", g) for i, g in enumerate(grads)],
            "output": [self.tensor(f"{full}.output.{i}", o) for i, o in enumerate(outputs)],
        }
        self.backwards.append({full: back})

    def parameters_grad(self, name: str, grads: dict[str, Array], number: int = 0) -> None:
        full = f"{name}.parameters_grad.{number}"
        self.backwards.append({full: {n: [self.tensor(f"{full}.{n}", g)] for n, g in grads.items()}})

    def conv(
        self, name: str, x: Array, weight: Array, bias: Array | None, transposed: bool = False, **given: Any
    ) -> None:
        """A convolution and its gradients, as reference values rounded to the dtype of x."""
        axes = weight.ndim - 2
        per = {n: [given.get(n, d)] * axes for n, d in (("stride", 1), ("padding", 0), ("dilation", 1))}
        more = [given.get("output_padding", 0)] * axes
        groups, grad = given.get("groups", 1), given.get("grad")
        with aclnn.product("cpu"), aclnn.engine("reference"):
            common = (per["stride"], per["padding"], per["dilation"], transposed, more, groups)
            y = aclnn.convolution(x, weight, bias, *common, cube_math_type=0)
            g = self.draw(*y.shape, dtype=x.dtype) if grad is None else grad
            size = weight.shape[1] * groups if transposed else weight.shape[0]
            mask = (True, True, bias is not None)
            grads = aclnn.convolution_backward(g, x, weight, [size], *common, mask, cube_math_type=0)
        order = [per["stride"], per["padding"], more, groups, per["dilation"]] if transposed else None
        args = [x, weight, bias, *(order or [per["stride"], per["padding"], per["dilation"], groups])]
        self.function(name, args, y, g, grads)

    def elu(
        self, name: str, x: Array, args: Sequence[Any], alpha: float, scale: float = 1.0, inner: float = 1.0
    ) -> None:
        with aclnn.product("cpu"), aclnn.engine("reference"):
            y = aclnn.elu(x, alpha, scale, inner)
            g = self.draw(*x.shape, dtype=x.dtype)
            grad = aclnn.elu_backward(g, alpha, scale, inner, False, x)
        self.function(name, [x, *args], y, g, [grad])

    def conv_tbc(self, name: str, x: Array, weight: Array, bias: Array, pad: int) -> None:
        with aclnn.product("cpu"), aclnn.engine("reference"):
            y = aclnn.conv_tbc(x, weight, bias, pad, cube_math_type=0)
            g = self.draw(*y.shape, dtype=x.dtype)
            grads = aclnn.conv_tbc_backward(g, x, weight, bias, pad, cube_math_type=0)
        self.function(name, [x, weight, bias, pad], y, g, grads)

    def finish(self, level: str = "mix", **changed: Any) -> Path:
        data = dict(self.forwards)
        for entry in reversed(self.backwards):
            data |= entry
        head = {
            "task": "tensor",
            "level": level,
            "framework": "pytorch",
            "dump_data_dir": "elsewhere/gone",
            "data": data,
        }
        (self.folder / "dump.json").write_text(json.dumps({**head, **changed}))
        (self.folder / "construct.json").write_text(json.dumps(self.parents))
        frames = {
            str(i): [
                [name],
                [
                    "File /usr/lib/python3/site-packages/torch/nn/modules/module.py, line 1, in inner, \n hook()",
                    f"File /home/me/train.py, line {line}, in forward, \n y = net(x)",
                ],
            ]
            for i, (name, line) in enumerate(self.lines.items())
        }
        (self.folder / "stack.json").write_text(json.dumps(frames))
        return self.folder


def lstm(
    writer: DumpWriter, name: str, x: Array, params: dict[str, Array], layers: int = 1, directions: int = 1,
    batch_first: bool = False, hx: tuple[Array, Array] | None = None,
) -> None:  # fmt: skip
    """An LSTM module: forward, backward and the gradients of its parameters."""
    hidden = params["weight_hh_l0"].shape[1]
    batch = x.shape[0 if batch_first else 1]
    zeros = np.zeros((layers * directions, batch, hidden), x.dtype)
    state = (zeros, zeros) if hx is None else hx
    flags = {"has_bias": "bias_ih_l0" in params, "num_layers": layers, "bidirectional": directions == 2}
    flags["batch_first"] = batch_first
    with aclnn.product("cpu"), aclnn.engine("reference"):
        y, h, c, *saved = aclnn.lstm(x, list(params.values()), list(state), **flags)
        dy = writer.draw(*y.shape, dtype=x.dtype)
        i, g, f, o, hs, cs, tanhc = saved
        lists = {"i": i, "g": g, "f": f, "o": o, "h": hs, "c": cs, "tanhc": tanhc}
        back = aclnn.lstm_backward(x, list(state), list(params.values()), dy, zeros, zeros, **lists, **flags)
    writer.module(name, 0, [x] if hx is None else [x, list(hx)], [y, [h, c]], params)
    writer.module_backward(name, 0, [dy, None, None], back[:1] if hx is None else back[:3])
    writer.parameters_grad(name, dict(zip(params, back[3], strict=True)))


def lstm_parameters(
    writer: DumpWriter, inputs: int, hidden: int, layers: int = 1, directions: int = 1, dtype: Any = np.float32
) -> dict[str, Array]:
    found = {}
    for layer in range(layers):
        for end in ("", "_reverse")[:directions]:
            columns = hidden * directions if layer else inputs
            shapes = {"weight_ih": (4 * hidden, columns), "weight_hh": (4 * hidden, hidden)}
            shapes |= {"bias_ih": (4 * hidden,), "bias_hh": (4 * hidden,)}
            for part, shape in shapes.items():
                found[f"{part}_l{layer}{end}"] = writer.draw(*shape, dtype=dtype, scale=0.4)
    return found


def hostile_pickle() -> bytes:
    """What a free unpickler would run."""
    return pickle.dumps(print, protocol=2)


# A dump of one convolution, and what comparing it says

CONV = "Functional.conv2d.0"


def judged(folder: Path, **options: Any) -> DumpComparison:
    found = aclnn.compare(folder, **options)
    assert isinstance(found, DumpComparison)
    return found


def names(found: DumpComparison) -> list[str]:
    return [call.name for call in found.calls]


def why(found: DumpComparison) -> dict[str, str]:
    return {r.label: r.why.en for r in found.unjudged if r.why}


def entry(folder: Path, change: Any) -> None:
    path = folder / "dump.json"
    told = json.loads(path.read_text())
    change(told["data"])
    path.write_text(json.dumps(told))


def small(folder: Path, **options: Any) -> DumpWriter:
    w = DumpWriter(folder, **options)
    w.conv(CONV, w.draw(2, 3, 8, 8), w.draw(4, 3, 3, 3), w.draw(4), padding=1)
    return w
