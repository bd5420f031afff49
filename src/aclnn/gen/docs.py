"""The generated parts of the READMEs and the docs; the rest of a page is written by hand.

A part stands between `<!-- arguments aclnnElu: written by make gen -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from aclnn import ops
from aclnn.base.device import DEVICES
from aclnn.base.status import Status
from aclnn.contract.model import Op
from aclnn.contract.rule import Rule
from aclnn.contract.stage import Stage
from aclnn.gen import clients, names, tables
from aclnn.gen.tables import Table, markdown
from aclnn.golden.judge.standards import STANDARDS
from aclnn.golden.texts import Text

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
READMES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh.md"}

_MARKED = re.compile(r"(<!-- (\w+)([^:]*): written by make gen -->\n).*?(<!-- end -->)", re.DOTALL)


def targets() -> dict[Path, Callable[[], str]]:
    """Every page with a generated part."""
    pages = [
        (page, lang) for lang, readme in READMES.items() for page in (readme, *sorted((DOCS / lang).rglob("*.md")))
    ]
    return {page: partial(render, page, lang) for page, lang in pages if _MARKED.search(_read(page))}


def render(page: Path, lang: str) -> str:
    """The page with its generated parts as the contracts say them now."""

    def written(mark: re.Match[str]) -> str:
        if mark[2] not in _PARTS:
            raise ValueError(f"{page} asks for {mark[2]!r}; there is {', '.join(_PARTS)}")
        return mark[1] + _PARTS[mark[2]](mark[3].strip(), lang) + mark[4]

    return _MARKED.sub(written, _read(page))


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _operators(nothing: str, lang: str) -> str:
    """Every operator, linked to the page of its family, which is beside the page with this table."""
    head, rows = tables.operators(lang)
    pages = [ops.family_of(op) for op in ops.all_ops()]
    return markdown((head, [(f"[{row[0]}]({page}.md)", *row[1:]) for row, page in zip(rows, pages, strict=True)]))


def _prototype(name: str, lang: str) -> str:
    op = ops.find(name)
    c = f"{tables.prototype(op)};\n\n{tables.second_prototype(op)};\n"
    return f"```c++\n{c}```\n\n```python\n{tables.python_prototype(op)}\n```\n"


def _arguments(name: str, lang: str) -> str:
    head, rows = tables.arguments(ops.find(name), lang)
    return markdown((head, [(f"`{row[0]}`", *row[1:]) for row in rows]))


def _rules(name: str, lang: str) -> str:
    head = {"en": ("", "code", "rule"), "zh": ("", "返回码", "规则")}[lang]
    rules = list(folded(ops.find(name), lang))
    return markdown((head, [(str(i), str(int(rule.code)), rule.statement(lang)) for i, rule in enumerate(rules, 1)]))


def folded(op: Op, lang: str) -> Iterator[Rule]:
    """The rules in the order they are checked; neighbours that say the same of different arguments are said once."""
    shown = (rule for rule in op.all_rules if rule.stage is not Stage.VIEW)
    for nobody, alike in groupby(shown, key=lambda rule: _about(rule, "")):
        first, *more = alike
        names = [getattr(rule, _subject(rule) or "") for rule in (first, *more) if more]
        yield _about(nobody, _joined(names, lang, first)) if more else first


def _subject(rule: Rule) -> str | None:
    """The field that names the argument a rule is about."""
    return next((f.name for f in fields(rule) if f.name in ("arg", "first")), None)


def _about(rule: Rule, name: str) -> Rule:
    subject = _subject(rule)
    return replace(rule, **{subject: name}) if subject else rule  # type: ignore[arg-type]


def _joined(names: list[str], lang: str, rule: Rule) -> str:
    if lang == "zh":
        return "、".join(names)
    every = "any" if rule.kind == "NoNullElement" else "each"
    return f"{every} of {', '.join(names[:-1])} and {names[-1]}"


def _decisions(labels: str, lang: str) -> str:
    """The rows of the page of decisions that are about these operators."""
    wanted = set(_split(labels))
    first_table = _read(DOCS / lang / "decisions.md").partition("\n## ")[0]
    rows = [_cells(line) for line in first_table.splitlines() if line.startswith("|")]
    found = [row[1:] for row in rows[2:] if wanted & set(_split(row[0]))]
    if not found:
        raise ValueError(f"no decision is about {labels}")
    return markdown((rows[0][1:], found))


def _split(labels: str) -> list[str]:
    return [label.strip() for label in re.split("[,，、]", labels)]


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


_MEANINGS = {
    Status.SUCCESS: Text("The work is planned, or on its stream.", "规划已完成，或任务已下发到流上。"),
    Status.ACLNN_ERR_PARAM_NULLPTR: Text("A required argument is null.", "必选参数为空指针。"),
    Status.ACLNN_ERR_PARAM_INVALID: Text("An argument breaks a rule.", "参数不满足某条规则。"),
    Status.ACLNN_ERR_RUNTIME_ERROR: Text("There is not enough memory.", "内存不足。"),
    Status.ACLNN_ERR_INNER: Text(
        "The executor has run before or is none, or the engine could not start.",
        "执行器已执行过或不是有效的执行器，或者引擎无法启动。",
    ),
}


def _codes(lang: str) -> Table:
    head = {"en": ("code", "name", "meaning"), "zh": ("返回码", "名称", "含义")}[lang]
    return head, [(str(int(status)), f"`{status.name}`", _MEANINGS[status].say(lang)) for status in Status]


def _products(lang: str) -> Table:
    head = {"en": ("product", "short", "soc name"), "zh": ("产品", "简称", "SoC名称")}[lang]
    return head, [(p.text(lang), f"`{p.key}`", f"`{p.soc}`") for p in DEVICES]


def _standards(lang: str) -> Table:
    head = {"en": ("standard", "asks for", "from", "since"), "zh": ("标准", "要求", "来源", "日期或版本")}[lang]
    return head, [(f"`{s.name}`", s.asks.say(lang), s.source.say(lang), s.since) for s in STANDARDS.values()]


def _numbers(lang: str) -> Table:
    """The numbers in force, as reports print them."""
    by_type = [s for s in STANDARDS.values() if "any" not in s.rows]
    rows = tuple(dict.fromkeys(row for s in by_type for row in s.rows))
    head = ({"en": "type", "zh": "类型"}[lang], *(f"`{s.name}`" for s in by_type))
    return head, [(f"`{row}`", *(s.rule(row).said if row in s.rows else "—" for s in by_type)) for row in rows]


_PARTS: dict[str, Callable[[str, str], str]] = {
    "support": lambda what, lang: markdown(tables.support(lang)),
    "operators": _operators,
    "prototype": _prototype,
    "arguments": _arguments,
    "rules": _rules,
    "decisions": _decisions,
    "codes": lambda what, lang: markdown(_codes(lang)),
    "products": lambda what, lang: markdown(_products(lang)),
    "clients": lambda what, lang: markdown(clients.needs(lang)),
    "functions": lambda what, lang: markdown(names.exported_functions(lang)),
    "standards": lambda what, lang: markdown(_standards(lang)),
    "numbers": lambda what, lang: markdown(_numbers(lang)),
}
