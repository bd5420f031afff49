"""Products a program can be checked against, and what each of them takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from aclnn.base.status import invalid

_F32_F16 = (FLOAT32, FLOAT16)
_F32_F16_BF16 = (FLOAT32, FLOAT16, BFLOAT16)
_EVERY_FLOAT = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)

FAMILIES = ("Elu", "Convolution", "ConvTbc", "Lstm", "ThnnFusedLstmCell")


@dataclass(frozen=True, eq=False)
class Product:
    """One profile: its names, and the dtypes each operator family takes on it (no entry: not supported)."""

    key: str
    name: str
    soc: str
    dtypes: dict[str, tuple[DType, ...]] = field(default_factory=dict)
    limited: bool = True  # False: no hardware limits, and empty tensors wherever the sums make sense

    def __repr__(self) -> str:
        return self.name

    def supports(self, family: str) -> bool:
        return family in self.dtypes


_TRAINING = {
    "Elu": _F32_F16_BF16,
    "Convolution": _F32_F16_BF16,
    "ConvTbc": _F32_F16_BF16,
    "Lstm": _F32_F16,
    "ThnnFusedLstmCell": _F32_F16,
}

A2 = Product("A2", "Atlas A2", "Ascend910B1", _TRAINING)
A3 = Product("A3", "Atlas A3", "Ascend910_93", _TRAINING)
CPU = Product("cpu", "cpu", "cpu", dict.fromkeys(FAMILIES, _EVERY_FLOAT), limited=False)

PRODUCTS = (
    A2,
    A3,
    Product("950", "Ascend 950", "Ascend950", {"Elu": _F32_F16_BF16}),
    Product("310P", "Atlas inference", "Ascend310P", {"Elu": _F32_F16}),
    Product("910", "Atlas training", "Ascend910", {"Elu": _F32_F16}),
    Product("310B", "Atlas 200I/500 A2", "Ascend310B"),
    CPU,
)
DEFAULT = A2

_BY_ANY_NAME = {alias.lower(): p for p in PRODUCTS for alias in (p.key, p.name, p.soc)}


def find(name: str | Product) -> Product:
    """A product by profile name, soc name or short form, in any case.

    >>> find("a3") is find("Ascend910_93") is find("Atlas A3")
    True
    """
    if isinstance(name, Product):
        return name
    product = _BY_ANY_NAME.get(name.strip().lower()) if isinstance(name, str) else None
    if product is None:
        choices = ", ".join(f"{p.name} ({p.key})" if p.key != p.name else p.name for p in PRODUCTS)
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise invalid(f"there is no product {shown}; choose one of {choices}.", "product")
    return product
