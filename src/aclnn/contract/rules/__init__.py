"""The closed vocabulary of rules, in the order they are checked: presence, types, numbers, shapes."""

from aclnn.contract.rules.numbers import Between, Descending, EachBelow, OneOf
from aclnn.contract.rules.presence import Length, NoNullElement, NotNull, ProductSupports
from aclnn.contract.rules.shapes import Equal, InsideStorage, Multiple, NoSelfOverlap, SameShape, ShapeIs
from aclnn.contract.rules.types import Castable, DtypeIn, FormatIn, RankIn, SameDtype, SameFormat, SameRank

__all__ = [
    "Between",
    "Castable",
    "Descending",
    "DtypeIn",
    "EachBelow",
    "Equal",
    "FormatIn",
    "InsideStorage",
    "Length",
    "Multiple",
    "NoNullElement",
    "NoSelfOverlap",
    "NotNull",
    "OneOf",
    "ProductSupports",
    "RankIn",
    "SameDtype",
    "SameFormat",
    "SameRank",
    "SameShape",
    "ShapeIs",
]
