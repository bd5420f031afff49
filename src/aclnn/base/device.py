"""Devices a program can be checked against, which users call products, and what each of them takes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.status import invalid

_F32_F16 = (FLOAT32, FLOAT16)
_F32_F16_BF16 = (FLOAT32, FLOAT16, BFLOAT16)
_EVERY_FLOAT = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)

# What each family takes on which devices, by their keys; on others it is not supported, and cpu takes every float.
_TAKEN: dict[str, dict[str, tuple[DType, ...]]] = {
    "Elu": {"A2 A3 950": _F32_F16_BF16, "310P 910": _F32_F16},
    "Convolution": {"A2 A3": _F32_F16_BF16},
    "ConvTbc": {"A2 A3": _F32_F16_BF16},
    "Lstm": {"A2 A3": _F32_F16},
    "ThnnFusedLstmCell": {"A2 A3": _F32_F16},
}
FAMILIES = tuple(_TAKEN)


@dataclass(frozen=True, eq=False)
class Device:
    """One profile: its names, and the dtypes each operator family takes on it (no entry: not supported)."""

    key: str
    name: str
    zh: str  # as Chinese documents call it
    soc: str
    dtypes: dict[str, tuple[DType, ...]] = field(default_factory=dict)
    limited: bool = True  # False: no hardware limits, and empty tensors wherever the sums make sense

    def __repr__(self) -> str:
        return self.name

    def text(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.name

    def supports(self, family: str) -> bool:
        return family in self.dtypes


def _device(key: str, name: str, zh: str, soc: str) -> Device:
    taken = {family: dtypes for family, rows in _TAKEN.items() for keys, dtypes in rows.items() if key in keys.split()}
    return Device(key, name, zh, soc, taken)


A2 = _device("A2", "Atlas A2", "Atlas A2 训练系列产品/Atlas A2 推理系列产品", "Ascend910B1")
A3 = _device("A3", "Atlas A3", "Atlas A3 训练系列产品/Atlas A3 推理系列产品", "Ascend910_93")
CPU = Device("cpu", "cpu", "cpu", "cpu", dict.fromkeys(FAMILIES, _EVERY_FLOAT), limited=False)

DEVICES = (
    A2,
    A3,
    _device("950", "Ascend 950", "Ascend 950PR/Ascend 950DT", "Ascend950"),
    _device("310P", "Atlas inference", "Atlas 推理系列产品", "Ascend310P"),
    _device("910", "Atlas training", "Atlas 训练系列产品", "Ascend910"),
    _device("310B", "Atlas 200I/500 A2", "Atlas 200I/500 A2 推理产品", "Ascend310B"),
    CPU,
)
DEFAULT = A2

# What documents call them, besides: parts of names that are written together, and members of a series.
_ALSO = {
    "A2": (
        "Atlas A2 训练系列产品/Atlas 800I A2 推理产品/A200I A2 Box 异构组件",
        *("Atlas A2 训练系列产品", "Atlas A2 推理系列产品", "Atlas 800I A2 推理产品", "A200I A2 Box 异构组件"),
        *("Atlas A2 training", "Atlas A2 inference"),
    ),
    "A3": ("Atlas A3 训练系列产品", "Atlas A3 推理系列产品", "Atlas A3 training", "Atlas A3 inference"),
    "950": ("Ascend 950PR", "Ascend 950DT"),
    "310B": ("Atlas 200I/500 A2 inference",),
}


def _plain(name: str) -> str:
    """A name without what documents write differently: case, blanks, markup, "series" and "products"."""
    return re.sub(r"<[^>]*>|\s|series|products?", "", name.lower())


_BY_ANY_NAME = {_plain(alias): p for p in DEVICES for alias in (p.key, p.name, p.zh, p.soc, *_ALSO.get(p.key, ()))}


def find(name: str | Device) -> Device:
    """A device by the name of its profile or documents, soc name or short form, in any case.

    >>> find("a3") is find("Ascend910_93") is find("Atlas A3") is find("Atlas A3 训练系列产品/Atlas A3 推理系列产品")
    True
    """
    if isinstance(name, Device):
        return name
    device = _BY_ANY_NAME.get(_plain(name)) if isinstance(name, str) else None
    if device is None:
        choices = ", ".join(f"{p.name} ({p.key})" if p.key != p.name else p.name for p in DEVICES)
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise invalid(f"there is no product {shown}; choose one of {choices}.", "product")
    return device
