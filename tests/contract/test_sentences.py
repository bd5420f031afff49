"""Whole sentences and statements of the contract language, in both languages, and what an error carries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aclnn.base.device import A2
from aclnn.base.dtype import FLOAT16, FLOAT32, FLOAT64, INT32
from aclnn.base.format import Format
from aclnn.base.tensor import dense
from aclnn.contract.builders import between, equal, length, one_of, same_dtype, same_format, shape_is, when
from aclnn.contract.call import Call
from aclnn.contract.check import check
from aclnn.contract.expr import Attr, Const, Dims, Is, Limited, PlaneOf, Rank
from aclnn.contract.model import ANY_FORMAT, bool_array, flag, tensor_in, tensor_list, tensor_updated
from aclnn.contract.rules import Descending
from tests.contract.test_language import HALF, OTHER, TEXT, sentence, toy, values

WHOLE = [
    # rules, what is changed, the whole sentence in both languages
    (
        (),
        {"x": HALF._replace(dtype=FLOAT64)},
        "x has dtype float64; on Atlas A2 it must be float32, float16 or bfloat16 (product cpu takes float64).",
        "x的数据类型是float64；在Atlas A2 训练系列产品/Atlas A2 推理系列产品上应为float32、float16或bfloat16"
        "（产品cpu支持float64）。",
    ),
    (
        (),
        {"x": HALF._replace(dtype=INT32)},
        "x has dtype int32; on Atlas A2 it must be float32, float16 or bfloat16.",
        "x的数据类型是int32；在Atlas A2 训练系列产品/Atlas A2 推理系列产品上应为float32、float16或bfloat16。",
    ),
    ((length("many", 3),), {}, "many has 2 elements but must have 3.", "many有2个元素，但应有3个。"),
    (
        (shape_is("x", Dims("y")),),
        {"y": OTHER},
        "x has shape [2, 3] but must have shape [2, 4] (y.shape).",
        "x的shape是[2, 3]，但应为[2, 4]（y.shape）。",
    ),
    (
        (equal(Dims("x"), PlaneOf(Attr("sizes"))),),
        {},
        "x.shape is [2, 3] but sizes is [1, 2]; the two must be equal.",
        "x.shape是[2, 3]，而sizes是[1, 2]；两者必须相等。",
    ),
    (
        (between(PlaneOf(Attr("sizes")), 2, 3),),
        {},
        "sizes is [1, 2]; each element must be 2..3.",
        "sizes是[1, 2]；每个元素应为2-3。",
    ),
]


@pytest.mark.parametrize(("rules", "changes", "en", "zh"), WHOLE)
def test_an_error_has_both_sentences_its_argument_and_its_rule(
    rules: tuple[Any, ...], changes: dict[str, Any], en: str, zh: str
) -> None:
    violation = check(toy(*rules), Call(values(**changes), A2))
    assert violation is not None
    error = violation.error()
    assert (error.message, error.message_zh) == (f"aclnnToyBackward: {en}", f"aclnnToyBackward：{zh}")
    assert (error.code, error.rule) == (violation.rule.code, violation.rule.kind)
    assert error.argument == en.split()[0].partition(".")[0]


def test_statements_are_whole_in_both_languages() -> None:
    op = toy(x=tensor_in("x", ranks=(1, 2, 3, 4), **TEXT))
    own = {rule.kind: rule for rule in reversed(op.all_rules) if rule.subjects == ("x",)}
    twice = when("fast", when(Is(Rank("x"), (2,)), one_of("mode", 1)))[0]
    for rule, en, zh in (
        (own["FormatIn"], "x has format ND", "x的数据格式是ND"),
        (own["RankIn"], "x has rank 1..4", "x的维度为1-4"),
        (
            length("sizes", Rank("x") + 1, 5)[0],
            "the length of sizes is the rank of x + 1 or 5",
            "sizes的长度为x的维度 + 1或5",
        ),
        (twice, "mode is 1 (when fast and the rank of x is 2)", "mode取值为1（fast为true且x的维度为2时）"),
    ):
        assert (rule.statement("en"), rule.statement("zh")) == (en, zh)
    assert (Limited().text("en"), Limited().text("zh")) == ("the product is an NPU", "产品为NPU")
    assert (Const(1) + Rank("x")).text("en") == "1 + the rank of x"


def test_kinds_of_arguments_and_their_fresh_outputs() -> None:
    assert (flag("a", **TEXT).kind, bool_array("a", **TEXT).kind) == ("bool", "bool_array")
    assert tensor_updated("a", **TEXT).updated is True
    copies = tensor_list("copies", out=True, shape="many", dtype_like="many", **TEXT)
    op, call = toy(copies=copies), Call(values(many=(HALF, OTHER)), A2)
    assert op.fresh_output(op.by_name["out"], call) == values()["x"]
    assert op.fresh_output(copies, call) == (HALF, OTHER._replace(dtype=FLOAT16))
    pair = tensor_list("pair", out=True, count=Const(2), shape=(Const(4),), dtype_like="x", **TEXT)
    assert op.fresh_output(pair, call) == (dense(FLOAT32, (4,), Format.ND),) * 2


def test_a_list_has_as_many_tensors_as_it_says() -> None:
    op = toy(many=tensor_list("many", count=Const(2), **TEXT))
    assert sentence(op) is None
    assert sentence(op, many=(HALF,) * 3) == "aclnnToyBackward: many has 3 elements but must have 2."


def test_rules_of_an_empty_list_and_of_formats() -> None:
    assert sentence(toy(same_dtype("many", "x")), many=()) is None
    free = {name: tensor_in(name, formats=ANY_FORMAT, **TEXT) for name in ("x", "y")}
    other = str(sentence(toy(same_format("x", "y"), **free), y=values()["x"]._replace(format=Format.NCHW)))
    assert other.startswith("aclnnToyBackward: y has format NCHW but x has format ND")


COUNTS = [
    # elements, what is wrong in both languages
    ([4, 4, 2, 0], None, None),
    ([5, 2], "x[0] is 5", "x[0]是5"),
    ([3, 4, 1], "x[1] is 4 after 3", "x[1]是4（前一个元素是3）"),
    ([3, 2, -1], "x[2] is -1 after 2", "x[2]是-1（前一个元素是2）"),
    ([4, 2, 3], "x[2] is 3 after 2", "x[2]是3（前一个元素是2）"),
]


@pytest.mark.parametrize(("elements", "en", "zh"), COUNTS)
def test_elements_that_do_not_increase(elements: list[int], en: str | None, zh: str | None) -> None:
    rule = Descending(arg="x", most=Const(4))
    words = rule.broken_by(Call(values(), A2), np.array(elements))
    if words is None:
        assert en is None
        return
    wanted = "; the elements must lie in 0..4 and not increase, 4 being 4"
    assert rule.sentence(words, "en") == f"{en}{wanted}"
    assert rule.sentence(words, "zh") == f"{zh}；各元素应在0到4之间且不递增，4即4"
