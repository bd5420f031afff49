"""The Python door: arguments as Python has them → tensors → plan → run → results in the caller's kind of array."""

from __future__ import annotations

import inspect
import operator
import time
import warnings
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from aclnn import ops
from aclnn.base.device import Device
from aclnn.base.foreign_arrays import Adopted, adopt, to_torch
from aclnn.base.format import Format
from aclnn.base.geometry import Array
from aclnn.base.scalar import scalar, too_wide
from aclnn.base.status import AclnnError, invalid, reason
from aclnn.base.tensor import TensorSpec, kind_of
from aclnn.contract.call import Call, Value
from aclnn.contract.check import check
from aclnn.contract.expr import Expr
from aclnn.contract.model import BY_VALUE, HIDDEN, Arg, Op
from aclnn.runtime import scratch, settings
from aclnn.runtime.call_cache import call_cache
from aclnn.runtime.call_key import CallKey, call_key, says_all
from aclnn.runtime.executor import Executor, check_values
from aclnn.runtime.familiar_calls import recall, remember
from aclnn.runtime.memory import output_memory
from aclnn.runtime.overlap import check_addresses
from aclnn.runtime.plan import Plan, make_plan
from aclnn.runtime.refusals import parameter
from aclnn.runtime.replay import Replay, may_replay
from aclnn.runtime.verbose import VERBOSE, report

Setting = str | Device | None
Tensors = tuple[Any, ...]
Attributes = tuple[Any, ...]
Plain = tuple[Tensors, Attributes]
"""The arguments of a call as Python shows them: tensors, then all others."""

_MOST_TENSORS = 2**16  # of a list
_MOST_ELEMENTS = 64  # of an array attribute; no contract asks for more, and an iterator may be endless


class _Unquoted(str):
    """An annotation that `help` shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class Operator:
    """One operator as Python calls it. The generated subclasses give it its signature."""

    def __init_subclass__(cls) -> None:
        """`help` asks the class how it is called, and means the operator."""
        called = inspect.signature(cls.__call__)
        shown = [p.replace(annotation=_Unquoted(p.annotation)) for p in called.parameters.values() if p.name != "self"]
        cls.__signature__ = inspect.Signature(shown, return_annotation=_Unquoted(called.return_annotation))  # type: ignore[attr-defined]

    def __init__(self, name: str):
        self.op: Op = ops.find(name)
        self.__name__ = self.op.python

    def __repr__(self) -> str:
        return f"<operator aclnn.{self.op.python} ({self.op.name})>"

    def _apply(self, tensors: Tensors, attributes: Attributes, out: Any, product: Setting, engine: str | None) -> Any:
        """A functional call. One whose like was made before has nothing left to check but addresses."""
        may_be_known = product is None and engine is None
        if may_be_known:
            known = recall(self.op, tensors, attributes, out)
            if known is not None:
                return known(tensors, out)
        replay = None
        try:
            cached = call_cache.ready(call_key(self.op, tensors, attributes, out, product, engine))
            if cached is not None and (replay := cached.replay) is not None:
                memory = tensors if replay.is_plain else replay.memory(tensors, out)
        except Exception:  # whatever it is, there is a sentence for it below
            replay = None
        if replay is not None:
            call_cache.note_use(cached)  # type: ignore[arg-type]
            if may_be_known:
                remember(self, tensors, attributes, out)
            return replay.run(cached.run, memory, tensors, out)  # type: ignore[union-attr]
        return self._call(self._named(tensors, attributes), out, product, engine, (tensors, attributes))

    def apply(self, tensors: Tensors, attributes: Attributes) -> Any:
        """A functional call of tensors and attributes, each in the order of Python's arguments."""
        return self._apply(tensors, attributes, None, None, None)

    def apply_anew(self, tensors: Tensors, attributes: Attributes, out: Any = None) -> Any:
        """A functional call, whatever was made before."""
        return self._call(self._named(tensors, attributes), out, None, None, (tensors, attributes))

    def _prepare(
        self,
        tensors: Tensors,
        attributes: Attributes,
        out: Any,
        product: Setting,
        engine: str | None,
        repeatable: bool,
    ) -> Executor:
        """Phase 1 of a call."""
        given = self._named(tensors, attributes)
        return self._plan(given, out, product, engine, repeatable, (tensors, attributes))

    def _named(self, tensors: Tensors, attributes: Attributes) -> dict[str, Any]:
        shown = [a for a in self.op.inputs if a.python != HIDDEN]
        names = [a.name for a in (*(a for a in shown if a.is_tensor), *(a for a in shown if not a.is_tensor))]
        return dict(zip(names, (*tensors, *attributes), strict=True))

    def _call(
        self, given: Mapping[str, Any], out: Any, product: Setting, engine: str | None, plain: Plain | None = None
    ) -> Any:
        """The same with everything bound and checked; a call that turns out to be plain is short from now on."""
        start = time.perf_counter()
        key = _exact_key(self.op, plain, out, product, engine)
        binding = self._bound(given, out, product, engine, key)
        cached, plan = binding.cached, binding.plan
        _pass_on(plan.advice)
        views = [v if used else None for v, used in zip(binding.views(), plan.taking_part, strict=True)]
        if out is not None:
            check_addresses(self.op, views)
        planned = time.perf_counter()
        check_values(plan, views)
        block = scratch.take(self.op, plan.workspace_size)
        cached.run(block, *views)
        scratch.give_back(block)
        if plain is not None and key is not None and not binding.rows and may_replay(plan):
            cached.replay = cached.replay or Replay(plan, plain[0], out)  # it makes outputs of the plan's own shapes
        if VERBOSE:
            report(plan, (planned - start) * 1e6, (time.perf_counter() - planned) * 1e6)
        return binding.result

    def _plan(
        self,
        given: Mapping[str, Any],
        out: Any,
        product: Setting,
        engine: str | None,
        repeatable: bool,
        plain: Plain | None = None,
    ) -> Executor:
        start = time.perf_counter()
        binding = self._bound(given, out, product, engine, _exact_key(self.op, plain, out, product, engine))
        _pass_on(binding.plan.advice)
        plan_us = (time.perf_counter() - start) * 1e6
        return Executor(binding.plan, binding.views(), repeatable=repeatable, result=binding.result, plan_us=plan_us)

    def _bound(
        self, given: Mapping[str, Any], out: Any, product: Setting, engine: str | None, key: CallKey | None
    ) -> Binding:
        found = settings.current_product(product), settings.current_engine(engine)
        return Binding(self.op, given, out, *found, key)


def _exact_key(op: Op, plain: Plain | None, out: Any, product: Setting, engine: str | None) -> CallKey | None:
    """The key of what may be a plain call; None where equal keys might be different calls."""
    if plain is None:
        return None
    tensors, attributes = plain
    try:
        key = call_key(op, tensors, attributes, out, product, engine)
        hash(key)
        return key if says_all(op, tensors, attributes) else None
    except Exception:  # it is not plain
        return None


class Binding:
    """The arguments of one call: values and plan for phase 1, memory for phase 2, and the result to hand back."""

    def __init__(
        self,
        op: Op,
        given: Mapping[str, Any],
        out: Any,
        device: Device,
        engine: str,
        key: CallKey | None = None,
    ):
        self.op, self.device, self.engine = op, device, engine
        self.threads = settings.current_threads()
        self.values: dict[str, Value] = {}
        self.memory: dict[str, Any] = {}
        self.to_torch = False
        for arg in op.inputs:
            self._bind(arg, given.get(arg.name))
        if out is not None:
            self._take_outputs(out)
        self.rows = op.rows.in_steps(self.values) if op.rows else {}
        if self.rows:
            self._see_in_steps()
        if key is None:  # all that was bound says it as well
            key = (op.name, device.key, engine, self.threads, out is None, *self.values.values())
        self.cached = call_cache.get(key, self._make_plan)
        self.plan = self.cached.plan
        if out is None:
            self._make_outputs(given)

    def _see_in_steps(self) -> None:
        """Rows become what the contract knows; splitting an axis never copies."""
        for name, spec in self.rows.items():
            self.values[name] = spec
            if self.memory[name] is not None:
                self.memory[name] = self.memory[name].reshape(spec.shape)

    def views(self) -> list[Any]:
        return [self.memory[a.name] for a in self.op.tensors]

    def _make_plan(self) -> Plan:
        if len(self.values) < len(self.op.args):
            self._infer_outputs()
        return make_plan(self.op, Call(self.values, self.device), self.engine, self.threads)

    def _infer_outputs(self) -> None:
        """The outputs that the contract gives to valid inputs, as specs."""
        call = Call({**self.values, **dict.fromkeys(a.name for a in self.op.outputs)}, self.device)
        violation = check(self.op, call, outputs=False)
        if violation is not None:
            raise violation.error()
        for arg in self.op.fresh:
            self.values[arg.name] = self.op.fresh_output(arg, call) if arg.takes_part(call) else None

    def _make_outputs(self, given: Mapping[str, Any]) -> None:
        """Fresh arrays for the outputs of the plan; one that is updated in place is what the caller gave."""
        results = [given[arg.name] if arg.given else self._make_output(arg) for arg in self.op.outputs]
        self.result = results[0] if len(results) == 1 else tuple(results)

    def _make_output(self, arg: Arg) -> Any:
        if self.plan.call[arg.name] is None:
            self.memory[arg.name] = None
            return None
        specs = self.plan.call.specs(arg.name)
        arrays = [output_memory(self.op, arg.name, s.shape, s.dtype) for s in specs]
        if self.rows and self.op.rows and arg.name in self.op.rows.args:  # the caller has rows: it gets rows
            results = [a.reshape(a.shape[0] * a.shape[1], a.shape[2]) for a in arrays]
        else:
            results = arrays
        results = [to_torch(a) for a in results] if self.to_torch else results
        if arg.kind == "tensor_list":
            self.memory[arg.name] = arrays
            return results
        self.memory[arg.name] = arrays[0]
        return results[0]

    def _take_outputs(self, out: Any) -> None:
        outputs = self.op.fresh
        given = (out,) if len(outputs) == 1 and not isinstance(out, tuple) else out
        if not isinstance(given, (tuple, list)) or len(given) != len(outputs):
            names = ", ".join(a.snake for a in outputs)
            what = f"has {len(given)} elements" if isinstance(given, (tuple, list)) else f"is {kind_of(out)}"
            raise parameter(self.op, f"out {what}; it must be a tuple of {len(outputs)} ({names})", "out")
        for arg, value in zip(outputs, given, strict=True):
            self._bind(arg, value)
        self.result = out

    def _bind(self, arg: Arg, value: Any) -> None:
        try:
            self.values[arg.name] = self._convert(arg, value)
        except AclnnError as error:  # the outer layer adds whose argument it was
            raise parameter(self.op, error.message.rstrip("."), arg.name) from None
        except Exception as error:  # numbers and arrays of others may raise anything when they are read
            text = f"{arg.name} is a {type(value).__name__} that cannot be read ({reason(error)})"
            raise parameter(self.op, text, arg.name) from error

    def _convert(self, arg: Arg, value: Any) -> Value:
        if value is None and arg.kind not in BY_VALUE:
            self.memory[arg.name] = None
            return None
        if arg.kind == "tensor":
            spec, self.memory[arg.name] = self._adopt(arg, value, arg.name)
            return spec
        if arg.kind == "tensor_list":
            adopted = [self._adopt(arg, v, f"{arg.name}[{i}]") for i, v in enumerate(_listed(arg, value))]
            self.memory[arg.name] = [view for _, view in adopted]
            return tuple(spec for spec, _ in adopted)
        if arg.python_axes is not None and _is_one(value):
            value = [value] * self._count(arg.python_axes)
        return _ATTRIBUTES[arg.kind](arg, value)  # type: ignore[no-any-return]

    def _count(self, axes: Expr) -> int:
        """How many axes there are; none while a tensor that says it is absent, which a rule will refuse."""
        if any(self.values[name] is None for name in axes.names()):
            return 0
        return int(axes.value(Call(self.values, self.device)))

    def _adopt(self, arg: Arg, value: Any, name: str) -> tuple[TensorSpec | None, Array | None]:
        if value is None:
            return None, None
        taken: Adopted = adopt(value, name, writable=arg.out)
        self.to_torch = self.to_torch or (taken.from_torch and arg.given)
        spec = taken.spec
        if spec.format is Format.UNDEFINED:
            spec = spec._replace(format=arg.default_format(spec.rank))
        return spec, taken.view


def _pass_on(advice: tuple[str, ...]) -> None:
    """Warns whoever called the operator: between are `_call` or `_plan`, what calls them, and the generated method."""
    for text in advice:
        warnings.warn(text, UserWarning, stacklevel=5)


def _listed(arg: Arg, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise invalid(f"{arg.name} is {kind_of(value)}; it must be a list of arrays.")
    tensors = list(islice(value, _MOST_TENSORS + 1))  # a subclass may lie about its length
    if len(tensors) > _MOST_TENSORS:
        raise invalid(f"{arg.name} has more than {_MOST_TENSORS} elements.")
    return tensors


def _is_one(value: Any) -> bool:
    """Whether a value is one number, not a sequence of them."""
    return isinstance(value, (int, float)) or getattr(value, "ndim", None) == 0


def _integer(arg: Arg, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise invalid(f"{arg.name} is {value}; it must be an integer.")
    try:
        number = operator.index(value)
    except TypeError:
        raise invalid(f"{arg.name} is {kind_of(value)}; it must be an integer.") from None
    bits = {"int8": 8, "int32": 32}.get(arg.kind, 64)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise too_wide(arg.name, number, bits)
    return number


def _integers(arg: Arg, value: Any) -> tuple[int, ...]:
    return tuple(_integer(arg, v) for v in _elements(arg, value))


def _flag(arg: Arg, value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise invalid(f"{arg.name} is {kind_of(value)}; it must be True or False.")


def _flags(arg: Arg, value: Any) -> tuple[bool, ...]:
    return tuple(_flag(arg, v) for v in _elements(arg, value))


def _elements(arg: Arg, value: Any) -> list[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") or _is_one(value):
        raise invalid(f"{arg.name} is {kind_of(value)}; it must be a sequence.")
    elements = list(islice(value, _MOST_ELEMENTS + 1))
    if len(elements) > _MOST_ELEMENTS:
        raise invalid(f"{arg.name} has more than {_MOST_ELEMENTS} elements.")
    return elements


def _real(arg: Arg, value: Any) -> float:
    if isinstance(value, (int, float, np.floating, np.integer)):
        try:
            return float(value)
        except OverflowError:
            raise invalid(f"{arg.name} is an integer beyond every float.") from None
    raise invalid(f"{arg.name} is {kind_of(value)}; it must be a number.")


_ATTRIBUTES: dict[str, Callable[[Arg, Any], Any]] = {
    "scalar": lambda arg, value: scalar(value, name=arg.name),
    "bool": _flag,
    "int8": _integer,
    "int32": _integer,
    "int64": _integer,
    "double": _real,
    "int_array": _integers,
    "bool_array": _flags,
}
