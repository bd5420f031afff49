"""Recording a training step: every call of ours in it, with its gradients, in files that `aclnn compare` reads.

The layout is that of a dump (dump.json and one file per tensor), so a step that was recorded here and one that came
from a profiler are judged by the same rules. What a dump usually does not say of modules stands in attributes.json.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from aclnn.base.status import invalid, reason
from aclnn.torch.swap import checked

KINDS = (
    *("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    *("ELU", "SELU", "CELU", "LSTM", "LSTMCell"),
)
_ATTRIBUTES = (
    *("stride", "padding", "dilation", "groups", "output_padding", "padding_mode"),
    *("alpha", "inplace", "batch_first", "dropout"),
)


def attributes(model: nn.Module) -> dict[str, dict[str, Any]]:
    """What a dump does not say of the modules of a model, by their names: for `aclnn.compare(dump, attributes=…)`."""
    found = {}
    for name, module in _ours(model):
        said = {key: getattr(module, key) for key in _ATTRIBUTES if hasattr(module, key)}
        if not module.training and "dropout" in said:
            said["dropout"] = 0.0
        found[name] = {key: list(v) if isinstance(v, tuple) else v for key, v in said.items()}
    return found


def _ours(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, module in checked(model).named_modules():
        if type(module).__name__ in KINDS:
            yield name or "root", module


@contextmanager
def record(model: nn.Module, folder: str | Path) -> Iterator[Path]:
    """Records what the modules of a model compute while it lasts; `aclnn compare -tp folder` then judges it.

    with aclnn.torch.record(model, "step"):
        model(x).backward()
    """
    watched, recorder = list(_ours(model)), _Recorder(Path(folder))
    hooks = [hook for name, module in watched for hook in recorder.watch(name, module)]
    try:
        yield recorder.folder
    finally:
        for hook in hooks:
            hook.remove()
        recorder.finish(attributes(model))


class _Told(torch.autograd.Function):
    """Nothing forwards; backwards it tells what gradient passes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, told: Any) -> torch.Tensor:
        ctx.told = told
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.told(grad)
        return grad, None


class _Recorder:
    """What was seen so far; tensors are on disk already."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            (folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise invalid(f"nothing can be recorded in {folder}: {reason(error)}.", "folder") from error
        self.entries: dict[str, Any] = {}
        self.stacks: dict[str, list[str]] = {}
        self.counts: dict[str, int] = {}

    def watch(self, name: str, module: nn.Module) -> Iterator[Any]:
        full = f"Module.{name}.{type(module).__name__}"
        in_place = bool(getattr(module, "inplace", False))
        yield module.register_forward_pre_hook(
            lambda m, args, kwargs: self.before(full, in_place, args, kwargs), with_kwargs=True
        )
        yield module.register_forward_hook(
            lambda m, args, kwargs, output: self.after(full, m, output), with_kwargs=True, always_call=False
        )
        for parameter_name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                yield parameter.register_hook(lambda grad, key=parameter_name: self.parameter(full, key, grad))

    def before(self, full: str, in_place: bool, args: Any, kwargs: Any) -> Any:
        number = self.counts[full] = self.counts.get(full, -1) + 1
        name, back = f"{full}.forward.{number}", f"{full}.backward.{number}"
        told = {key: self.stored(f"{name}.input.{key}", value) for key, value in kwargs.items()}
        listed = [self.stored(f"{name}.input.{i}", value) for i, value in enumerate(args)]
        self.entries[name] = {"input_args": listed, "input_kwargs": told, "output": [], "parameters": {}}
        self.stacks[name] = _frames()
        if in_place:  # a view that is written to would lose its history
            return args, kwargs
        count = sum(_learning(args)) + sum(_learning(tuple(kwargs.values())))
        slots = iter(range(count))

        def watched(tensor: torch.Tensor) -> torch.Tensor:
            slot = next(slots)
            return self.told(tensor, back, "output", slot, count)

        return _each(args, watched), {key: _each(value, watched) for key, value in kwargs.items()}

    def after(self, full: str, module: nn.Module, output: Any) -> Any:
        number = self.counts[full]
        name, back = f"{full}.forward.{number}", f"{full}.backward.{number}"
        parts = output if isinstance(output, tuple) else (output,)
        entry = self.entries[name]
        entry["output"] = [self.stored(f"{name}.output.{i}", part) for i, part in enumerate(parts)]
        entry["parameters"] = {
            key: self.stored(f"{name}.parameters.{key}", value) for key, value in module.named_parameters(recurse=False)
        }
        count = len(list(_tensors(parts)))
        slots = iter(range(count))
        learns = iter([t.requires_grad for t in _tensors(parts)])

        def watched(tensor: torch.Tensor) -> torch.Tensor:
            slot = next(slots)
            return self.told(tensor, back, "input", slot, count) if next(learns) else tensor

        seen = _each(parts, watched, every=True)
        return seen if isinstance(output, tuple) else seen[0]

    def told(self, tensor: torch.Tensor, back: str, part: str, slot: int, count: int) -> torch.Tensor:
        """The same tensor, whose gradient is noted when it passes."""

        def note(grad: torch.Tensor) -> None:
            entry = self.entries.setdefault(back, {"input": [], "output": []})
            entry[part] = entry[part] or [None] * count
            entry[part][slot] = self.stored(f"{back}.{part}.{slot}", grad)

        found: torch.Tensor = _Told.apply(tensor, note)
        return found

    def parameter(self, full: str, key: str, grad: torch.Tensor) -> None:
        number = 0
        while key in self.entries.get(f"{full}.parameters_grad.{number}", {}):
            number += 1
        name = f"{full}.parameters_grad.{number}"
        self.entries.setdefault(name, {})[key] = [self.stored(f"{name}.{key}", grad)]

    def stored(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(name, value)
        if isinstance(value, nn.utils.rnn.PackedSequence):
            return {key: self.stored(f"{name}.{key}", part) for key, part in value._asdict().items()}
        if isinstance(value, (tuple, list)):
            return [self.stored(f"{name}.{i}", one) for i, one in enumerate(value)]
        return None if value is None else {"type": type(value).__name__, "value": value}

    def tensor(self, name: str, value: torch.Tensor) -> dict[str, Any]:
        plain = value.detach().cpu().contiguous()
        raw = plain.view(torch.int16) if plain.dtype is torch.bfloat16 else plain
        np.save(self.folder / "dump_tensor_data" / f"{name}.npy", raw.numpy())
        told = {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape)}
        return told | {"requires_grad": value.requires_grad, "data_name": f"{name}.npy"}

    def finish(self, said: dict[str, Any]) -> None:
        head = {"task": "tensor", "level": "L0", "framework": "pytorch", "data": self.entries}
        files = {"dump.json": head, "stack.json": self.stacks, "attributes.json": said}
        for name, content in files.items():
            (self.folder / name).write_text(json.dumps(content), encoding="utf-8")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)


def _learning(value: Any) -> Iterator[int]:
    return (int(t.requires_grad) for t in _tensors(_unpacked(value)))


def _unpacked(value: Any) -> Any:
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return value.data
    return [_unpacked(one) for one in value] if isinstance(value, (tuple, list)) else value


def _each(value: Any, change: Any, every: bool = False) -> Any:
    """The same nest with its tensors changed: those that ask for a gradient, or every one."""
    if isinstance(value, torch.Tensor):
        return change(value) if every or value.requires_grad else value
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return value._replace(data=_each(value.data, change, every))
    if isinstance(value, (tuple, list)):
        return type(value)(_each(one, change, every) for one in value)
    return value


def _frames() -> list[str]:
    """The lines that led here, the innermost first, without ours and PyTorch's own."""
    seen = traceback.extract_stack()[:-1]
    return [
        f"File {f.filename}, line {f.lineno}, in {f.name}, \n {f.line}"
        for f in reversed(seen)
        if f.filename != __file__ and "/torch/nn/" not in f.filename
    ]
