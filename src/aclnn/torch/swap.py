"""Putting our modules into a model that exists."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import nn

from aclnn.base.status import invalid
from aclnn.base.tensor import kind_of
from aclnn.torch import modules

COUNTERPARTS: dict[type[nn.Module], type[nn.Module]] = {
    nn.ELU: modules.ELU,
    nn.Conv1d: modules.Conv1d,
    nn.Conv2d: modules.Conv2d,
    nn.Conv3d: modules.Conv3d,
    nn.ConvTranspose1d: modules.ConvTranspose1d,
    nn.ConvTranspose2d: modules.ConvTranspose2d,
    nn.ConvTranspose3d: modules.ConvTranspose3d,
    nn.LSTM: modules.LSTM,
    nn.LSTMCell: modules.LSTMCell,
}


class Exchanged(NamedTuple):
    """A module by its name in the model, what it was, and why it was left alone ("" if it was replaced)."""

    name: str
    kind: str
    reason: str = ""


class Report(NamedTuple):
    replaced: tuple[Exchanged, ...]
    left: tuple[Exchanged, ...]

    def __str__(self) -> str:
        head = f"replaced {len(self.replaced)} modules, left {len(self.left)} alone"
        replaced = (f"  {m.name} ({m.kind}): replaced" for m in self.replaced)
        left = (f"  {m.name} ({m.kind}): left alone, {m.reason}" for m in self.left)
        return "\n".join([head, *replaced, *left])


def checked(model: Any) -> nn.Module:
    """A model that is one."""
    if not isinstance(model, nn.Module):
        raise invalid(f"model is {kind_of(model)}; it must be a torch.nn.Module.", "model")
    return model


def swap(model: nn.Module) -> Report:
    """Replaces the modules of a model by ours, in place, and says what it did and what it left alone and why.

    Only classes change: parameters, hooks, buffers and optimizers that hold them stay what they are. Functions that a
    model calls (`torch.nn.functional.elu`) are no modules and stay PyTorch's. To go back: `swap_back(model)`.
    """
    replaced, left = [], []
    for name, module in checked(model).named_modules():
        kind, reason = type(module), _reason_against(module)
        if not reason:
            module.__class__ = COUNTERPARTS[kind]
            replaced.append(Exchanged(name, kind.__name__))
        elif not list(module.children()) and kind not in COUNTERPARTS.values():
            left.append(Exchanged(name, kind.__name__, reason))
    return Report(tuple(replaced), tuple(left))


def swap_back(model: nn.Module) -> None:
    """Gives a model PyTorch's own classes again."""
    originals = {ours: theirs for theirs, ours in COUNTERPARTS.items()}
    for module in checked(model).modules():
        module.__class__ = originals.get(type(module), type(module))


def _reason_against(module: nn.Module) -> str:
    kind = type(module)
    if kind in COUNTERPARTS:
        return _limit_of(module)
    derived = next((base.__name__ for base in COUNTERPARTS if isinstance(module, base)), None)
    return f"it is a subclass of {derived} and may compute something else" if derived else "there is no such operator"


def _limit_of(module: nn.Module) -> str:
    """What PyTorch's module has and the operator does not, if it is in use."""
    if getattr(module, "proj_size", 0):
        return "aclnnLSTM has no projections (proj_size)"
    if getattr(module, "transposed", False) and any(
        extra >= step for extra, step in zip(module.output_padding, module.stride, strict=True)
    ):
        return "its output_padding is not below its stride, as aclnnConvolution asks"
    return ""
