"""The tables people read, in both languages: arguments, rules, products. `aclnn describe` and the docs share them."""

from __future__ import annotations

from textwrap import fill

from aclnn import ops
from aclnn.base.device import DEVICES, FAMILIES
from aclnn.contract.expr import Attr, Const
from aclnn.contract.model import HIDDEN, Arg, Op
from aclnn.contract.rule import Rule, say
from aclnn.contract.rules import Between, Length
from aclnn.contract.stage import Stage
from aclnn.golden.texts import Text

C_TYPES = {
    "tensor": "aclTensor*",
    "tensor_list": "aclTensorList*",
    "scalar": "aclScalar*",
    "int_array": "aclIntArray*",
    "bool_array": "aclBoolArray*",
    "bool": "bool",
    "int8": "int8_t",
    "int32": "int",
    "int64": "int64_t",
    "double": "double",
}

_ARGUMENT_HEAD = {
    "en": ("argument", "in/out", "description", "notes", "dtype", "format", "dimensions", "non-contiguous"),
    "zh": ("参数名", "输入/输出", "描述", "使用说明", "数据类型", "数据格式", "维度", "非连续Tensor"),
}
_RULE_HEAD = {"en": ("code", "rule"), "zh": ("错误码", "规则")}
_PRODUCT_HEAD = {"en": "product", "zh": "产品"}

_STEP = "    "

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Column heads, and rows."""


def arguments(op: Op, lang: str) -> Table:
    """The columns Ascend users know."""
    return _ARGUMENT_HEAD[lang], [_argument(op, arg, lang) for arg in op.args]


def _argument(op: Op, arg: Arg, lang: str) -> tuple[str, ...]:
    role = {"en": ("in", "out", "in and out"), "zh": ("输入", "输出", "输入输出")}[lang][arg.out + arg.updated]
    first = (arg.name, role, arg.en if lang == "en" else arg.zh, _notes(op, arg, lang))
    if not arg.is_tensor:
        return *first, C_TYPES[arg.kind], "-", "-", "-"
    return *first, _dtypes(op, arg), _formats(arg, lang), _ranks(arg), "×" if arg.contiguous_documented else "√"


# What a note says of a rule about an argument, by kind of rule; conditions and formulas are in the table of rules.
_NOTES = {
    "SameDtype": Text("dtype of {second}", "数据类型与{second}一致"),
    "SameShape": Text("shape of {second}", "shape与{second}一致"),
    "Length": Text("length {formula}", "长度为{formula}"),
    "Between": Text("{range}", "取值{range}"),
    "OneOf": Text("{expected}", "取值为{expected}"),
}


def _notes(op: Op, arg: Arg, lang: str) -> str:
    null = [{"en": "may be null", "zh": "可为空"}[lang]] if arg.optional else []
    own = (rule for rule in op.all_rules if rule.subjects[:1] == (arg.name,) and not rule.conditions)
    found = [_note(rule, lang) for rule in own if rule.kind in _NOTES and _is_plain(rule)]
    return {"en": "; ", "zh": "；"}[lang].join(null + found) or "-"


def _note(rule: Rule, lang: str) -> str:
    return _NOTES[rule.kind].say(lang).format(**{k: say(v, lang) for k, v in rule.doc_words().items()})


def _is_plain(rule: Rule) -> bool:
    if isinstance(rule, Length):
        return all(isinstance(length, Const) for length in rule.lengths)
    return not isinstance(rule, Between) or isinstance(rule.what, Attr)


def _dtypes(op: Op, arg: Arg) -> str:
    widest = arg.dtypes or max((p.dtypes.get(op.family, ()) for p in DEVICES if p.limited), key=len)
    return ", ".join(d.acl_name for d in widest)


def _formats(arg: Arg, lang: str) -> str:
    seen = dict.fromkeys(str(f) for rank, choices in arg.formats if rank in arg.ranks for f in choices)
    return ", ".join(seen) or {"en": "any", "zh": "任意"}[lang]


def _ranks(arg: Arg) -> str:
    low, high = min(arg.ranks), max(arg.ranks)
    return str(low) if low == high else f"{low}-{high}"


def rules(op: Op, lang: str) -> Table:
    """Every rule in the order it is checked, with the code a broken one answers."""
    shown = [r for r in op.all_rules if r.stage is not Stage.VIEW]
    return _RULE_HEAD[lang], [(str(int(r.code)), r.statement(lang)) for r in shown]


def support(lang: str) -> Table:
    """Which dtypes each product takes, by operator family."""
    short = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64"}
    none = {"en": "no", "zh": "不支持"}[lang]
    rows = []
    for device in DEVICES:
        taken = (" ".join(short[d.name] for d in device.dtypes.get(f, ())) or none for f in FAMILIES)
        rows.append((device.text(lang), *taken))
    return (_PRODUCT_HEAD[lang], *FAMILIES), rows


def prototype(op: Op) -> str:
    """The C declaration of phase 1."""
    lines = [f"    {_declared(a)}," for a in op.args]
    return "\n".join(
        [
            f"aclnnStatus {op.name}GetWorkspaceSize(",
            *lines,
            "    uint64_t* workspaceSize,",
            "    aclOpExecutor** executor)",
        ]
    )


def second_prototype(op: Op) -> str:
    """The C declaration of phase 2."""
    lines = ("void* workspace", "uint64_t workspaceSize", "aclOpExecutor* executor", "aclrtStream stream")
    return f"aclnnStatus {op.name}(\n    " + ",\n    ".join(lines) + ")"


def python_prototype(op: Op) -> str:
    """The public function, and what it returns."""
    shown = [a for a in op.inputs if a.python != HIDDEN]
    positional = [_with_default(a) for a in shown if not a.keyword_only]
    by_name = [_with_default(a) for a in shown if a.keyword_only] + (["out=None"] if op.fresh else [])
    given = ", ".join([*positional, "*", *by_name, "product=None", "engine=None"])
    results = ", ".join(a.snake.removesuffix("_out") for a in op.outputs)
    result = f"({results})" if len(op.outputs) > 1 else results
    return f"aclnn.{op.python}(\n{fill(given, 88, initial_indent=_STEP, subsequent_indent=_STEP)}\n) -> {result}"


def _with_default(arg: Arg) -> str:
    return arg.snake if arg.default is ... else f"{arg.snake}={arg.default!r}"


def _declared(arg: Arg) -> str:
    pointer = C_TYPES[arg.kind].endswith("*")
    return ("const " if pointer and not arg.out else "") + f"{C_TYPES[arg.kind]} {arg.name}"


def operators(lang: str) -> Table:
    """Every operator with its Python name and what it is."""
    head = {"en": ("operator", "Python", "what it is"), "zh": ("算子", "Python", "功能")}[lang]
    return head, [(op.name, f"aclnn.{op.python}", op.en if lang == "en" else op.zh) for op in ops.all_ops()]


def markdown(table: Table) -> str:
    head, rows = table
    lines = [_row(head), _row(("---",) * len(head)), *(_row(r) for r in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"
