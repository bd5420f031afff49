"""The documentation: both languages alike, every operator in it, every block of it works as it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn import ops
from aclnn.contract.model import Op
from aclnn.contract.stage import Stage
from aclnn.gen.docs import folded
from tests.doors.toolchain import needs_compiler
from tests.meta.pages import (
    ROOT,
    Block,
    blocks,
    follow,
    headings,
    looks_like,
    printed_by,
    promised,
    prose,
    read,
    sections,
)

DOCS = ROOT / "docs"
PAGES = sorted(str(p.relative_to(DOCS / "en")) for p in (DOCS / "en").rglob("*.md"))
EXAMPLES = [
    *sorted((ROOT / "examples" / "python").glob("*.py")),
    *((ROOT / "examples/torch" / f"{f}.py") for f in ops.FAMILIES),
]
OPERATOR_HEADINGS = {
    "en": [
        "What it does",
        "Formula",
        "Prototype",
        "Arguments",
        "Rules and return codes",
        "Precision and determinism",
        "Differences and decisions",
        "Examples",
    ],
    "zh": ["功能说明", "计算公式", "函数原型", "参数说明", "约束与返回码", "精度与确定性", "差异与决定", "调用示例"],
}


def page(lang: str, name: str) -> str:
    return read(DOCS / lang / name)


def copy_project(folder: Path, *names: str) -> None:
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)


def test_both_languages_have_the_same_files() -> None:
    english, chinese = ({str(p.relative_to(DOCS / lang)) for p in (DOCS / lang).rglob("*")} for lang in ("en", "zh"))
    assert english == chinese


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_headings_blocks_and_formulas(name: str) -> None:
    english, chinese = page("en", name), page("zh", name)
    assert [h.level for h in headings(english)] == [h.level for h in headings(chinese)]
    assert [b[:2] for b in blocks(english)] == [b[:2] for b in blocks(chinese)]
    assert [b.text for b in blocks(english) if b.caption] == [b.text for b in blocks(chinese) if b.caption]
    formulas = [re.findall(r"^\$\$\n.*?^\$\$$", text, re.DOTALL | re.MULTILINE) for text in (english, chinese)]
    assert formulas[0] == formulas[1]
    assert prose(english).count("\n|") == prose(chinese).count("\n|"), "tables of different lengths"


@pytest.mark.parametrize("name", sorted(p.name for p in (DOCS / "en").glob("*.svg")))
def test_drawings_differ_only_in_their_words(name: str) -> None:
    english, chinese = (re.sub(r">[^<>\n]+</text>", "></text>", page(lang, name)) for lang in ("en", "zh"))
    assert english == chinese


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_house_is_drawn_as_it_stands(lang: str) -> None:
    """Every package has its row on the page of the architecture and its place in the picture, top to bottom."""
    packages = {path.parent.name for path in (ROOT / "src" / "aclnn").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/` \|", page(lang, "architecture.md"), re.MULTILINE)) == packages
    drawn = re.findall(r'class="name"[^>]*>([^<]+)<', page(lang, "house.svg"))
    assert {name for text in drawn for name in text.split(" · ")} == packages | {"import aclnn"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_file_that_the_architecture_names_is_there(lang: str) -> None:
    text = page(lang, "architecture.md")
    rows = re.findall(r"^\| [^|]+ \| `(\w+/[\w/.]+\.\w+)` \|$", text, re.MULTILINE)
    assert len(rows) >= 20
    named = {
        *rows,
        *(f"src/aclnn/{place}" for place in re.findall(r"`((?!src/|tests/)\w+/[\w/]+\.(?:py|txt|md))`", text)),
    }
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []
    assert "src/aclnn/contract/check.py" in named


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("family", ops.FAMILIES)
def test_an_operator_page_has_the_fixed_headings(family: str, lang: str) -> None:
    assert [h.text for h in headings(page(lang, f"ops/{family}.md")) if h.level == 2] == OPERATOR_HEADINGS[lang]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_every_operator_is_documented(op: Op, lang: str) -> None:
    text = page(lang, f"ops/{ops.family_of(op)}.md")
    for part in ("prototype", "arguments", "rules"):
        assert f"<!-- {part} {op.name}: written by make gen -->" in text


@pytest.mark.parametrize("op", ops.all_ops(), ids=str)
def test_folding_keeps_every_rule_and_its_place(op: Op) -> None:
    shown = [rule for rule in op.all_rules if rule.stage is not Stage.VIEW]
    told = list(folded(op, "en"))
    assert [rule.stage for rule in told] == sorted(rule.stage for rule in told)
    names = [name for rule in shown for name in rule.names()]
    said = " ".join(rule.statement("en") for rule in told)
    assert all(re.search(rf"\b{name}\b", said) for name in names)
    assert len(told) <= len(shown)
    assert {rule.kind for rule in told} == {rule.kind for rule in shown}


def _promises() -> list[object]:
    """Every block of Python that says what it prints, and that is not part of a longer walk through a page."""
    found = [(f"{lang}/{name}", b) for lang in ("en", "zh") for name in PAGES for b in blocks(page(lang, name))]
    return [
        pytest.param(b.text, id=name, marks=[pytest.mark.torch] if "import torch" in b.text else [])
        for name, b in found
        if b.language == "python" and promised(b.text)
    ]


@pytest.mark.parametrize("code", _promises())
def test_a_block_prints_what_it_says(code: str) -> None:
    assert printed_by(code, "page") == promised(code)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=[pytest.mark.torch] * ("torch" in p.parts), id=f"{p.parent.name}-{p.stem}")
        for p in EXAMPLES
    ],
)
def test_an_example_prints_what_it_says(path: Path) -> None:
    code = read(path)
    assert promised(code)
    assert printed_by(code, path.name) == promised(code)


def _tutorial(lang: str) -> list[object]:
    """The tutorial section by section: each stands on its own."""
    needs = [(), (), (needs_compiler,), (), (pytest.mark.torch,)]
    long = () if lang == "en" else (pytest.mark.long,)
    found = sections(page(lang, "tutorial.md"))
    steps = zip(found.items(), needs, strict=True)
    return [pytest.param(text, marks=(*marks, *long), id=f"{lang}-{title}") for (title, text), marks in steps]


def installs(step: Block) -> bool:
    return step.language == "sh" and "pip install" in step.text


@pytest.mark.parametrize("section", [*_tutorial("en"), *_tutorial("zh")])
def test_the_tutorial_by_copy_and_paste(section: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    follow([step for step in blocks(section) if not installs(step)], tmp_path)


@pytest.mark.long
@needs_compiler
def test_the_tutorial_on_a_fresh_machine(tmp_path: Path) -> None:
    """With a virtual environment of its own, up to the part that needs PyTorch."""
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(tmp_path / "probe"), "typer"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        pytest.skip("no package index within reach")
    copy_project(tmp_path, "src", "examples", "README.md", "LICENSE", "NOTICE", "pyproject.toml")
    *first, _ = sections(page("en", "tutorial.md")).values()
    follow([step for section in first for step in blocks(section)], tmp_path)


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", ["dump", pytest.param("port", marks=needs_compiler), pytest.param("ci", marks=needs_compiler)]
)
def test_a_how_to_page_by_copy_and_paste(name: str, lang: str, tmp_path: Path) -> None:
    follow(blocks(page(lang, f"howto/{name}.md")), tmp_path)


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_fault_is_found_as_the_page_says(lang: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("step")  # a longer path would be folded
    (folder / "examples").symlink_to(ROOT / "examples")
    run = ("python examples", "report.html --lang zh ||", "report.html ||")
    steps = blocks(page(lang, "howto/step.md"))
    follow([s for s in steps if s.language == "text" or any(part in s.text for part in run)], folder)


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_operator_is_added_as_the_page_says(lang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_project(tmp_path, "src", "tests", "docs", "README.md", "README.zh.md", "pyproject.toml")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    follow(blocks(page(lang, "howto/operator.md")), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_build_without_warnings_and_need_no_network(lang: str, tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-c", str(DOCS), "-t", lang]
    ended = subprocess.run([*command, str(DOCS / lang), str(tmp_path)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    built = {str(p.relative_to(tmp_path)): read(p) for p in tmp_path.rglob("*.html")}
    assert {name.replace(".md", ".html") for name in PAGES} <= built.keys()
    assert "<math" in built["ops/elu.html"]
    loaded = [u for text in built.values() for u in re.findall(r'(?:src|<link[^>]*href)="(\w+://[^"]*)"', text)]
    assert loaded == []
    for word in ("Back to top", "Made with", ">Home<"):  # of the theme, which has no Chinese for them
        assert (word in built["tutorial.html"]) == (lang == "en"), word
    index = read(tmp_path / "searchindex.js")
    assert '"code161002":' in index
    assert (r'"\u5377\u79ef":' in index) == (lang == "zh")  # 卷积
    assert "splitQuery" in read(tmp_path / "_static" / "language_data.js")
    assert ("几何平均" in read(tmp_path / "_images" / "ratio-given.svg")) == (lang == "zh")


def test_code_of_the_pages_pastes_from_raw_markdown() -> None:
    for lang in ("en", "zh"):
        for name in PAGES:
            assert "```{code-block}" not in page(lang, name), f"{lang}/{name} has a directive around its code"
            assert not [b for b in blocks(page(lang, name)) if b.text.startswith(":")]


def test_every_word_of_a_plot_that_people_read_has_its_chinese() -> None:
    known = set(re.findall(r'^    "(.*?)": "', read(DOCS / "conf.py"), re.MULTILINE))
    said = re.compile(r"[a-z]{3,}(?: [a-z']+)+")  # sentences; names of operators and shapes have no blanks like these
    for plot in (ROOT / "benchmarks" / "results").rglob("*.svg"):
        for text in re.findall(r"(?<=>)[^<>]+(?=</text>)", read(plot)):
            left = text
            for word in known:
                left = left.replace(word, "")
            assert not said.search(left), f"{plot.name}: {text}"


@pytest.mark.parametrize(
    ("output", "alike"),
    [("a 1\nb\n", True), ("a   1\nb\n", True), ("a 1\nx\nb\n", False), ("a 2\nb\n", False), ("", False)],
)
def test_the_reader_of_outputs_can_say_no(output: str, alike: bool) -> None:
    assert looks_like(output, "a 1\nb\n") is alike


def test_the_follower_of_pages_can_fail(tmp_path: Path) -> None:
    follow([Block("sh", "", "echo yes\n"), Block("text", "", "yes\n")], tmp_path)
    with pytest.raises(AssertionError, match="but it was"):
        follow([Block("sh", "", "echo yes\n"), Block("text", "", "no\n")], tmp_path)
    with pytest.raises(AssertionError):
        follow([Block("sh", "", "false\n")], tmp_path)


def test_comments_under_code_are_promises_and_others_are_not() -> None:
    assert promised("print(1)\n# 1\n\n# Prose.\nprint(2)\n# 2\n# 3\n") == ["1", "2", "3"]
