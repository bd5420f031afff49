"""The contract language itself: order, conditions, absent arguments, sentences. Operators here are made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aclnn.base.device import A2, CPU, Device
from aclnn.base.dtype import FLOAT16, FLOAT32, FLOAT64
from aclnn.base.format import Format
from aclnn.base.scalar import scalar as number
from aclnn.base.tensor import TensorSpec, dense
from aclnn.contract.advice import Advice
from aclnn.contract.builders import (
    all_or_none,
    at_least,
    between,
    each_below,
    equal,
    length,
    multiple,
    one_of,
    same_dtype,
    same_format,
    same_rank,
    same_shape,
    shape_is,
    when,
)
from aclnn.contract.call import Call
from aclnn.contract.cases import Case, draw, fill, views
from aclnn.contract.check import check
from aclnn.contract.expr import (
    Above,
    At,
    Attr,
    Const,
    Dim,
    Dims,
    Either,
    ElementDim,
    Formula,
    Is,
    Limited,
    Not,
    PlaneOf,
    Promoted,
    Rank,
)
from aclnn.contract.model import (
    HIDDEN,
    Op,
    bool_array,
    flag,
    int_array,
    scalar,
    snake_case,
    tensor_in,
    tensor_list,
    tensor_out,
)
from aclnn.contract.model import number as attribute
from aclnn.contract.rules import Descending
from aclnn.contract.stage import Stage
from tests.every import mutate

TEXT: dict[str, Any] = {"en": "An argument.", "zh": "一个参数。"}


def toy(*rules: Any, **changes: Any) -> Op:
    """x, y and a list; a factor, a mode, sizes, a mask; out of x's shape unless the mask says no."""
    args = {
        "x": tensor_in("x", ranks=(1, 2), **TEXT),
        "y": tensor_in("y", optional=True, **TEXT),
        "many": tensor_list("many", **TEXT),
        "factor": scalar("factor", **TEXT),
        "sizes": int_array("sizes", **TEXT),
        "limits": int_array("limits", **TEXT),
        "mode": attribute("mode", "int8", **TEXT),
        "fast": flag("fast", **TEXT),
        "mask": bool_array("mask", **TEXT),
        "out": tensor_out("out", shape="x", dtype_like="x", when=At("mask", 0), **TEXT),
    }
    return Op("aclnnToyBackward", "Elu", "A toy.", "玩具。", tuple((args | changes).values()), rules)


def values(**changes: Any) -> dict[str, Any]:
    x = dense(FLOAT32, (2, 3), Format.ND)
    good = {"x": x, "y": x, "many": (x, x), "factor": number(1.0), "sizes": (1, 2), "limits": (2, 3), "mode": 0}
    return good | {"fast": True, "mask": (True,), "out": x} | changes


def sentence(op: Op, product: Device = A2, lang: str = "en", **changes: Any) -> str | None:
    violation = check(op, Call(values(**changes), product))
    return None if violation is None else violation.sentence(lang)


OTHER = dense(FLOAT32, (2, 4), Format.ND)
HALF = dense(FLOAT16, (2, 3), Format.ND)

BROKEN = [
    # rules, what is changed, English sentence
    ((), {"x": None}, "x is null; it must be given"),
    ((), {"many": (OTHER, None)}, "many[1] is null; every element of the list must be given"),
    (
        (),
        {"x": HALF._replace(dtype=FLOAT64)},
        "x has dtype float64; on Atlas A2 it must be float32, float16 or bfloat16",
    ),
    ((), {"factor": number(1j)}, "factor has dtype complex128; it must be one that can be cast to float"),
    ((), {"x": dense(FLOAT32, ())}, "x has rank 0 (shape []); it must be 1 or 2"),
    ((), {"x": values()["x"]._replace(format=Format.NCHW)}, "x has format NCHW; with rank 2 it must be ND"),
    ((), {"out": OTHER}, "out has shape [2, 4] but x has shape [2, 3]; the two must be equal"),
    ((), {"out": HALF}, "out has dtype float16 but x has dtype float32; the two must be equal"),
    (
        (),
        {"y": TensorSpec(FLOAT32, (4,), (2,), 0, Format.ND, 6)},
        "the view of y touches elements 0 to 6 of a storage of 6",
    ),
    (
        (),
        {"out": values()["x"]._replace(strides=(1, 1))},
        "out has shape [2, 3] and strides [1, 1], so two indexes meet the same",
    ),
    ((length("many", 3),), {}, "many has 2 elements but must have 3."),
    ((length("sizes", 2),), {"sizes": (1,)}, "sizes has 1 element but must have 2."),
    ((length("sizes", Rank("x") + 1, 5),), {}, "sizes has 2 elements but must have 3 or 5 (the rank of x + 1 or 5)"),
    ((same_dtype("x", "many"),), {"many": (HALF, HALF)}, "many[0] has dtype float16 but x has dtype float32"),
    ((same_rank("x", "y"),), {"y": dense(FLOAT32, (), Format.ND)}, "y has rank 0 but x has rank 2"),
    ((same_format("x", "y"),), {"y": None, "x": OTHER, "out": HALF}, "out has dtype float16"),
    ((same_shape("x", "y"),), {"y": OTHER}, "y has shape [2, 4] but x has shape [2, 3]; the two must be equal"),
    (
        (shape_is("many", (Dim("x", 1), 3)),),
        {},
        "many[0] has shape [2, 3] but must have shape [3, 3] ([x.shape[1], 3])",
    ),
    ((between("sizes", 1, 1),), {}, "sizes is [1, 2]; each element must be 1"),
    ((between("mode", 1, 3),), {}, "mode is 0; it must be 1..3"),
    ((at_least("factor", 2),), {}, "factor is 1; it must be ≥ 2"),
    (
        (each_below("limits", "sizes"),),
        {},
        "limits is [2, 3] but sizes is [1, 2]; each element must be at least 0 and below",
    ),
    ((one_of("mode", 1, 2, 3),), {}, "mode is 0; it must be 1, 2 or 3"),
    ((when("fast", one_of("mode", 1)),), {}, "mode is 0; it must be 1 when fast"),
    ((equal(Dim("x", 0) * 2, Dim("y", 1)),), {}, "x.shape[0] × 2 is 4 but y.shape[1] is 3; the two must be equal"),
    ((equal(Dims("x"), Attr("sizes")),), {}, "x.shape is [2, 3] but sizes is [1, 2]"),
    ((equal(PlaneOf(Attr("sizes")), Dims("x", 1)),), {}, "sizes is [1, 2] but x.shape[1:] is [3]"),
    (
        (at_least(PlaneOf(Attr("sizes")), 3),),
        {"sizes": (1, 2, 3)},
        "sizes (H, W) is [2, 3]; each element must be ≥ 3",
    ),
    ((multiple(Dim("x", 1), Dim("x", 0)),), {}, "x.shape[1] is 3, which x.shape[0] = 2 does not divide"),
]


@pytest.mark.parametrize(("rules", "changes", "says"), BROKEN)
def test_a_broken_rule_says_both_values(rules: tuple[Any, ...], changes: dict[str, Any], says: str) -> None:
    found = sentence(toy(*rules), **changes)
    assert found is not None
    assert found.startswith(f"aclnnToyBackward: {says}")
    chinese = sentence(toy(*rules), lang="zh", **changes)
    assert chinese is not None
    assert chinese.endswith("。")
    assert not chinese.isascii()


def test_the_good_call_breaks_nothing() -> None:
    assert sentence(toy()) is None


def test_the_earlier_stage_decides_whatever_the_order_of_arguments() -> None:
    op = toy(same_shape("x", "y"), one_of("mode", 1))
    assert "out is null" in str(sentence(op, y=OTHER, out=None))
    assert "mode is 0" in str(sentence(op, y=OTHER))
    assert "y has shape" in str(sentence(op, y=OTHER, mode=1))
    assert "float64" in str(sentence(op, y=OTHER, x=values()["x"]._replace(dtype=FLOAT64)))
    stages = [rule.stage for rule in op.all_rules]
    assert stages == sorted(stages)


def test_a_masked_off_output_is_neither_required_nor_validated() -> None:
    assert sentence(toy(), mask=(False,), out=None) is None
    assert sentence(toy(), mask=(False,), out=OTHER._replace(dtype=FLOAT64)) is None
    assert "out is null" in str(sentence(toy(), mask=(True,), out=None))


def test_a_condition_that_reads_an_element_a_list_does_not_have_is_false() -> None:
    assert sentence(toy(), mask=(), out=None) is None
    assert At("mask", 3).value(Call(values(), A2)) is None


def test_a_rule_about_an_absent_optional_argument_says_nothing() -> None:
    assert sentence(toy(same_shape("x", "y"), equal(Dim("y", 1), 99)), y=None) is None


def test_conditions() -> None:
    call = Call(values(), A2)
    assert Not(Attr("fast")).value(call) is False
    assert Is(Rank("x"), (2, 4)).value(call) is True
    assert Limited().value(call) is True
    assert Limited().value(Call(values(), CPU)) is False
    assert Promoted(("x", "y")).value(Call(values(y=HALF), A2)) == "float32"
    assert Promoted(("x", "y")).text("en") == "the promoted dtype of x and y"
    assert Promoted(("x",)).text("zh") == "x的数据类型"
    assert (Rank("x") - 1).value(call) == 1
    double = Formula(lambda c: 2 * c["mode"], ("mode",), "twice mode", "两倍mode")
    assert double.value(Call(values(mode=4), A2)) == 8
    assert (double + 1).text("zh") == "两倍mode + 1"


def test_a_value_may_depend_on_a_condition() -> None:
    size = Either(Attr("fast"), ElementDim("many", 1, 1), Const(7)) * 2
    assert size.value(Call(values(), A2)) == 6
    assert size.value(Call(values(fast=False), A2)) == 14
    assert size.names() == ("fast", "many")
    assert size.text("en") == "(many[1].shape[1] if fast else 7) × 2"
    assert size.text("zh") == "（fast为true时many[1].shape[1]，否则7） × 2"


def test_advice_is_said_of_the_calls_it_concerns_and_refuses_none() -> None:
    advice = Advice(conditions=(Attr("fast"), Above(Attr("mode"), 3)), en="mode is {mode}", zh="mode是{mode}")
    quiet, loud = Call(values(mode=3), A2), Call(values(mode=4), A2)
    assert not advice.applies(quiet)
    assert advice.applies(loud)
    assert (advice.sentence(loud), advice.sentence(loud, "zh")) == ("mode is 4", "mode是4")


def test_documentation_says_the_condition() -> None:
    rule = next(r for r in toy(when("fast", one_of("mode", 1, 2))).all_rules if r.kind == "OneOf")
    assert rule.statement("en") == "mode is 1 or 2 (when fast)"
    assert rule.statement("zh") == "mode取值为1或2（fast为true时）"


def test_a_product_without_the_operator_is_said_before_dtypes() -> None:
    from aclnn.base.device import find

    op = Op("aclnnToy", "Lstm", "A toy.", "玩具。", (tensor_in("x", **TEXT),))
    violation = check(op, Call({"x": values()["x"]._replace(dtype=FLOAT64)}, find("310P")))
    assert violation is not None
    told = "aclnnToy: product Atlas inference does not support this operator; supported are Atlas A2, Atlas A3 and cpu."
    assert violation.sentence() == told
    assert (
        violation.sentence("zh") == "aclnnToy：产品Atlas 推理系列产品不支持该算子；"
        "支持的产品是Atlas A2 训练系列产品/Atlas A2 推理系列产品、Atlas A3 训练系列产品/Atlas A3 推理系列产品和cpu。"
    )


def test_mutation_finds_a_failing_case_for_each_rule_and_says_which_it_missed() -> None:
    op = toy(same_shape("x", "y"), when("fast", one_of("mode", 0, 1)), at_least("mode", -(10**9)))
    found = mutate.failing_cases([Case(op, values())])
    missing = [rule.statement("en") for rule in op.all_rules if rule not in found]
    assert missing == ["mode is ≥ -1000000000"]
    for rule, case in found.items():
        violation = check(op, case.call)
        assert violation is not None
        assert violation.rule == rule


def test_a_mutation_of_a_size_or_a_number_keeps_the_others() -> None:
    made = {case.note: case.values for case in mutate._mutants([Case(toy(), values())])}
    assert made["x size 3 on axis 0"]["x"].shape == (3, 3)
    assert made["x size 4 on axis 1"]["x"].shape == (2, 4)
    assert made["sizes attribute [0] = 64"]["sizes"] == (64, 2)
    assert made["sizes attribute [1] = 64"]["sizes"] == (1, 64)


def test_fill_never_gives_ones_or_equal_inputs_and_poisons_outputs() -> None:
    case = Case(toy(), values())
    filled = fill(case, 3)
    assert not (filled["x"].view == 1).any()
    assert len(np.unique(filled["x"].view)) == filled["x"].view.size
    assert (views(filled, case.op)["x"] == filled["x"].view).all()
    assert not (filled["x"].view == filled["y"].view).all()
    assert (filled["out"].view != filled["out"].view).all()
    again = fill(case, 3)
    assert (again["x"].view == filled["x"].view).all()
    fixed = Case(toy(), values(), data={"x": 7})
    assert (fill(fixed)["x"].view == 7).all()


def test_data_that_no_longer_fits_the_shape_is_drawn_instead() -> None:
    drawn, unfit = fill(Case(toy(), values()), 3), fill(Case(toy(), values(), data={"x": [1, 2, 3, 4, 5]}), 3)
    assert (unfit["x"].view == drawn["x"].view).all()


def test_every_domain_has_its_interval() -> None:
    rng, shape = np.random.default_rng(0), (1000, 16)
    for domain, low, high in (("gate", 0.05, 0.95), ("tanh", -0.95, 0.95), ("weight", -0.25, 0.25)):
        drawn = draw(domain, shape, rng)
        assert low <= drawn.min() < low + 0.01
        assert high - 0.01 < drawn.max() <= high
    anything = draw("any", shape, rng)
    assert anything.min() < -2
    assert anything.max() > 2


def test_expressions_say_themselves_in_both_languages() -> None:
    double = Formula(lambda c: 2 * c["mode"], ("mode",), "twice mode", "两倍mode")
    ranks = Is(Rank("x"), (2, 4))
    assert (double.text("en"), double.text("zh")) == ("twice mode", "两倍mode")
    assert (ranks.text("en"), ranks.text("zh")) == ("the rank of x is 2 or 4", "x的维度为2或4")
    statement = next(r for r in toy().all_rules if r.kind == "DtypeIn").statement
    assert statement("en") == "the dtype of x is one that the product takes"
    assert statement("zh") == "x的数据类型是产品支持的类型"
    of_rank = toy(length("sizes", Rank("x") + 1))
    assert str(sentence(of_rank, lang="zh")).endswith("（x的维度 + 1）。")


def test_the_plane_of_three_entries_is_the_last_two() -> None:
    assert PlaneOf(Attr("sizes")).value(Call(values(sizes=(7, 8, 9)), A2)) == (8, 9)
    assert PlaneOf(Attr("sizes")).value(Call(values(sizes=(8, 9)), A2)) == (8, 9)


def test_names_in_python() -> None:
    assert snake_case("gradOutput") == "grad_output"
    assert tensor_in("selfOrResult", **TEXT).snake == "self_or_result"
    assert tensor_in("self", python="grad_output", **TEXT).snake == "grad_output"
    assert bool_array("outputMask", python=HIDDEN, **TEXT).snake == HIDDEN
    assert toy().python == "toy_backward"


def test_all_or_none_of_two_arguments() -> None:
    both = toy(all_or_none("y", "many"), many=tensor_list("many", optional=True, **TEXT))
    assert sentence(both) is None
    assert sentence(both, y=None, many=None) is None
    assert str(sentence(both, y=None)).startswith("aclnnToyBackward: y is null; it must be given")
    assert str(sentence(both, many=None)).startswith("aclnnToyBackward: many is null; it must be given")
    assert {rule.stage for rule in all_or_none("y", "many")} == {Stage.NEEDED}


def test_a_rule_may_be_asked_in_another_stage() -> None:
    (early,), (usual,) = length("sizes", 3, stage=Stage.COUNT), length("sizes", 3)
    assert (early.stage, usual.stage) == (Stage.COUNT, Stage.LIST)


def test_values_rules_are_not_asked_in_phase_1() -> None:
    assert Descending(arg="x", most=Const(3)).stage is Stage.VALUE
    assert sentence(toy(Descending(arg="x", most=Const(3)))) is None
