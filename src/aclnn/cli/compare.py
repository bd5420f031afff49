"""`aclnn compare`: is a target right, and if not, where and why?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from aclnn import ops
from aclnn.base.status import AclnnError, invalid
from aclnn.cases.table import parse
from aclnn.cli.describe import Lang
from aclnn.cli.files import given_arguments
from aclnn.cli.progress import told
from aclnn.cli.screen import complain, say
from aclnn.golden import exits
from aclnn.golden.compare import compare as compare_
from aclnn.golden.judge.standards import STANDARDS
from aclnn.golden.result import Comparison, DumpComparison
from aclnn.golden.show.files import MissingPackageError, check_suffix
from aclnn.golden.show.terminal import WIDTH, as_text, render
from aclnn.golden.steps import Work, parsed_shard

Out = Annotated[
    list[Path] | None,
    typer.Option("-o", "--out", help="A report: .html, .csv, .json, .xml (JUnit), .xlsx, or a folder. Repeatable."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="An output to compare, others may be missing. Repeatable; default: all."),
]

Limits = Annotated[
    list[str] | None,
    typer.Option(help="A number in place of that of mixed: 1e-3, or for one output gradWeight=1e-3. Repeatable."),
]


def compare(
    target: Annotated[
        Path,
        typer.Option("-tp", "--target", help="A case file, a folder of dumps or of cases, or a table of targets."),
    ],
    golden: Annotated[
        Path | None, typer.Option("-gp", "--golden", help="A golden to compare with; without it one is computed.")
    ] = None,
    out: Out = None,
    standard: Annotated[
        str | None,
        typer.Option(help=f"The accuracy standard: {', '.join(STANDARDS)}. Default: mixed; of a dump: sound."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="The exit code follows soundness, not the standard.")
    ] = False,
    op: Annotated[str | None, typer.Option(help="The operator, where the target does not say it.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option("--arg", help="With --op: name=value, or name=file for a tensor. Repeatable.")
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="The row of the standard (float16, bfloat16, float32, hf32); what .bin files are."),
    ] = None,
    shape: Annotated[str | None, typer.Option(help="The shape of a .bin file, such as 2x3x4.")] = None,
    product: Annotated[str | None, typer.Option(help="The product to check against.")] = None,
    hints: Annotated[bool, typer.Option(help="Find out why a wrong result is wrong.")] = True,
    only: Only = None,
    rtol: Limits = None,
    atol: Limits = None,
    cap: Limits = None,
    check_golden: Annotated[
        bool, typer.Option("--check-golden", help="Hold a golden that is given against the reference, too.")
    ] = False,
    hf32: Annotated[str, typer.Option(help="Of a dump: whether float32 may be HF32: auto, yes or no.")] = "auto",
    attributes: Annotated[
        Path | None, typer.Option(help="Of a dump: a JSON file with what it does not say of modules.")
    ] = None,
    also: Annotated[Path | None, typer.Option(help="Of a dump: a third party's dump to stand beside it.")] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Of a dump: processes that share its calls.")] = 1,
    shard: Annotated[str, typer.Option(help="Of a dump: only a part of its calls, such as 2/8.")] = "1/1",
    lang: Annotated[Lang, typer.Option("--lang", help="Language: en or zh.")] = Lang.en,
) -> None:
    """Compares an NPU result with the float64 reference of its own inputs, or with a golden.

    The verdict is what the standard says; "sound" says whether every element is within what rounding can explain.
    Exit code 0: right; 1: a mismatch, whatever else went wrong; 2: bad input; 3: a failure of our own;
    130: interrupted.
    """
    for path in out or ():
        check_suffix(path)
    if arg and not op:
        raise invalid("--arg needs --op: without an operator nobody knows what it means.")
    arguments = given_arguments(ops.find(op), arg or []) if op else {}
    sizes = None if shape is None else _sizes(shape)
    said = partial(compare_, op=op, arguments=arguments, product=product, shape=sizes)
    with told(lang) as tell:
        work = Work(jobs, parsed_shard(shard), tell)
        more: dict[str, Any] = {"hf32": hf32, "attributes": attributes, "also": also, "work": work}
        more |= {"rtol": _limits("rtol", rtol), "atol": _limits("atol", atol), "cap": _limits("cap", cap)}
        found = said(target, golden, dtype, standard, hints=hints, only=only or None, check_golden=check_golden, **more)
    _show(found, lang)
    written = _written(found, out or [], lang)
    raise typer.Exit(exits.worst([found.exit_code(strict), written]))


def _written(found: Comparison, out: list[Path], lang: Lang) -> int:
    """Writes the reports, each on its own; what cannot be written is said, and the verdict stands."""
    codes = [exits.RIGHT]
    for path in out:
        try:
            for written in found.save(path, lang.value):
                say(f"report: {written}" if lang is Lang.en else f"报告：{written}")
        except MissingPackageError as error:
            complain(f"aclnn: {error}")
        except AclnnError as error:
            complain(f"aclnn: {error}")
            codes.append(exits.of(error.code))
    return exits.worst(codes)


def _show(found: Comparison, lang: Lang) -> None:
    console = Console()
    if console.is_terminal:
        width = console.width if isinstance(found, DumpComparison) else min(console.width, WIDTH)
        console.print(render(found, lang.value, width), width=width)
    else:
        say(as_text(found, lang.value))


def _limits(name: str, texts: list[str] | None) -> dict[str, float] | None:
    """Numbers by the names of outputs; "" is all others."""
    found: dict[str, float] = {}
    for text in texts or ():
        output, _, value = text.rpartition("=")
        try:
            found[output] = float(value)
        except ValueError:
            raise invalid(f"--{name} {text!r} is no number; write 1e-3, or gradWeight=1e-3.", name) from None
    return found or None


def _sizes(text: str) -> tuple[int, ...]:
    parsed = parse(text)
    sizes = parsed if isinstance(parsed, tuple) else (parsed,)
    if not all(isinstance(n, int) and n >= 0 for n in sizes):
        raise invalid(f"--shape {text!r} is no shape; write 2x3x4.")
    return sizes
