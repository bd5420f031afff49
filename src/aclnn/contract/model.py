"""What a contract is made of: arguments and operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aclnn.base.dtype import DType, by_name
from aclnn.base.format import Format
from aclnn.base.language import Text
from aclnn.base.run_once import kept
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract import rules
from aclnn.contract.advice import Advice
from aclnn.contract.builders import flatten
from aclnn.contract.call import Call
from aclnn.contract.expr import Expr, Promoted
from aclnn.contract.rows import Rows
from aclnn.contract.rule import Rule
from aclnn.contract.stage import Stage

FormatsByRank = tuple[tuple[int, tuple[Format, ...]], ...]
ANY_FORMAT: FormatsByRank = ()
HIDDEN = "-"
BY_VALUE = ("bool", "int8", "int32", "int64", "double")  # cannot be null


def formats(*choices: Format) -> FormatsByRank:
    """The same formats at every rank."""
    return tuple((rank, choices) for rank in range(9))


ONLY_ND = formats(Format.ND)


@dataclass(frozen=True, kw_only=True)
class Arg:
    """One argument. Its declaration yields its own null, dtype, rank and format rules."""

    name: str
    kind: str  # tensor, tensor_list, scalar, int_array, bool_array, bool, int32, int64, int8, double
    en: str
    zh: str
    python: str = ""  # the name in Python, where it is not the vendor name in snake_case; HIDDEN: not there at all
    out: bool = False
    updated: bool = False  # an output that the caller fills: its old values are read, it is an input too
    optional: bool = False  # may be null
    when: Expr | None = None  # takes part only when this holds: not validated, read or written otherwise
    dtypes: tuple[DType, ...] = ()  # empty: those the device takes for the family
    dtype_like: str | Promoted | None = None  # the dtype is that of this argument …
    dtype_free: bool = False  # … or, free, only by default
    round_through: str = ""  # an output is rounded to the dtype of this argument before its own
    ranks: tuple[int, ...] = tuple(range(9))
    ranks_also: Text | None = None  # what else may come, and becomes one of these before the contract looks
    formats: FormatsByRank = ONLY_ND
    shape: str | Expr | tuple[Expr, ...] | None = None  # that of an argument, or as computed; an output has one
    count: Expr | None = None  # of a list: how many tensors it holds
    default: Any = ...  # in Python
    keyword_only: bool = False
    python_axes: Expr | None = None  # Python may give one number for all entries of an array: so many there are
    domain: str = "normal"  # what test data look like: normal, gate (0..1), tanh (-1..1), weight (as layers begin)
    contiguous_documented: bool = False  # the vendor's page says contiguous only; strided works here all the same

    @property
    def given(self) -> bool:
        """Whether the caller gives its values."""
        return not self.out or self.updated

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("tensor", "tensor_list")

    @property
    def snake(self) -> str:
        return self.python or snake_case(self.name)

    def takes_part(self, call: Call) -> bool:
        return self.when is None or bool(self.when.value(call))

    def default_format(self, rank: int) -> Format:
        """The format an array without one gets."""
        choices = dict(self.formats).get(rank)
        return choices[0] if choices else Format.ND

    def own_rules(self, family: str) -> Iterator[Rule]:
        if not self.optional and self.kind not in BY_VALUE:
            conditional = {} if self.when is None else {"stage": Stage.NEEDED, "conditions": (self.when,)}
            yield rules.NotNull(arg=self.name, **conditional)  # type: ignore[arg-type]
        if self.kind == "tensor_list":
            yield rules.NoNullElement(arg=self.name)
            if self.count is not None:
                yield rules.Length(arg=self.name, lengths=(self.count,))
        if self.kind == "scalar":
            yield rules.Castable(arg=self.name)
        if self.is_tensor:
            yield from self._tensor_rules(family)
        if not self.out:
            yield from self.likeness_rules()

    def _tensor_rules(self, family: str) -> Iterator[Rule]:
        yield rules.DtypeIn(arg=self.name, family=family, dtypes=self.dtypes)
        yield rules.RankIn(arg=self.name, ranks=self.ranks, also=self.ranks_also)
        if self.formats:
            yield rules.FormatIn(arg=self.name, by_rank=self.formats)
        yield rules.InsideStorage(arg=self.name)
        if self.out:
            yield rules.NoSelfOverlap(arg=self.name)

    def likeness_rules(self) -> Iterator[Rule]:
        """Dtype and shape as the declaration has them from other arguments."""
        if isinstance(self.dtype_like, str) and not self.dtype_free:
            yield rules.SameDtype(first=self.name, second=self.dtype_like)
        if isinstance(self.shape, str):
            yield rules.SameShape(first=self.name, second=self.shape)
        elif self.shape is not None:
            yield rules.ShapeIs(arg=self.name, shape=self.shape)


def _maker(kind: str, **always: Any) -> Callable[..., Arg]:
    """What makes arguments of one kind, by name."""
    return lambda name, **given: Arg(name=name, kind=kind, **always, **given)


tensor_in, tensor_out = _maker("tensor"), _maker("tensor", out=True)
tensor_updated, tensor_list = _maker("tensor", out=True, updated=True), _maker("tensor_list")
scalar, flag = _maker("scalar"), _maker("bool")
int_array, bool_array = _maker("int_array"), _maker("bool_array")


def number(name: str, kind: str, **given: Any) -> Arg:
    return Arg(name=name, kind=kind, **given)


@dataclass(frozen=True, eq=False)
class Op:
    """One operator: the table everything else is derived from."""

    name: str  # aclnnEluBackward
    family: str  # Elu: its row in the table of base/device.py
    en: str
    zh: str
    args: tuple[Arg, ...]
    rules: tuple[Any, ...] = ()
    advice: tuple[Advice, ...] = ()  # what the maker of a valid call should know: a warning, never a refusal
    header: str = ""  # aclnnop/aclnn_<header>.h
    in_place: bool = False  # an output may be the same view as an input
    rows: Rows | None = None  # which tensors may also come as rows

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        raise TypeError("an operator's contract is looked up by name, not pickled")

    @kept
    def python(self) -> str:
        """aclnnEluBackward → elu_backward; aclnnInplaceElu → elu_, as Python's own libraries mark it."""
        name = self.name.removeprefix("aclnn")
        plain = name.removeprefix("Inplace")
        return snake_case(plain) + ("_" if plain != name else "")

    @kept
    def by_name(self) -> dict[str, Arg]:
        return {a.name: a for a in self.args}

    @kept
    def tensors(self) -> tuple[Arg, ...]:
        return tuple(a for a in self.args if a.is_tensor)

    @kept
    def inputs(self) -> tuple[Arg, ...]:
        return tuple(a for a in self.args if a.given)

    @kept
    def outputs(self) -> tuple[Arg, ...]:
        return tuple(a for a in self.args if a.out)

    @kept
    def fresh(self) -> tuple[Arg, ...]:
        """The outputs that a caller may leave to us."""
        return tuple(a for a in self.args if not a.given)

    @kept
    def all_rules(self) -> tuple[Rule, ...]:
        """Every rule, in the order they are checked: by stage, then as written.

        What an output has from the inputs is asked after what the inputs have from each other: the first fault counts.
        """
        derived = [rules.ProductSupports(family=self.family), *(r for a in self.args for r in a.own_rules(self.family))]
        of_outputs = [r for a in self.outputs for r in a.likeness_rules()]
        return tuple(sorted((*derived, *flatten(self.rules), *of_outputs), key=lambda rule: rule.stage))

    def fresh_output(self, arg: Arg, call: Call) -> TensorSpec | tuple[TensorSpec, ...]:
        """The dense tensor (the list of them) that an output of a valid call is."""
        dtype = arg.dtypes[0] if arg.dtype_like is None else _dtype_of(arg.dtype_like, call)
        if isinstance(arg.shape, str):
            made = tuple(dense(dtype, like.shape, like.format) for like in call.specs(arg.shape))
            return made if arg.kind == "tensor_list" else made[0]
        assert arg.shape is not None
        shapes = rules.ShapeIs(arg=arg.name, shape=arg.shape).expected(call)
        count = 1 if arg.count is None else arg.count.value(call)
        made = tuple(dense(dtype, shape, arg.default_format(len(shape))) for shape in islice(shapes, count))
        return made if arg.kind == "tensor_list" else made[0]


def _dtype_of(source: str | Promoted, call: Call) -> DType:
    if isinstance(source, str):
        return call.specs(source)[0].dtype
    found = by_name(source.value(call))
    assert found is not None
    return found


def snake_case(camel: str) -> str:
    """gradOutput → grad_output, tanhc → tanhc."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", camel).lower()
