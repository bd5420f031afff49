"""`aclnn compare`: is a target right, and if not, where and why?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aclnn import ops
from aclnn.base import exit_codes
from aclnn.base.language import Text, asked, current
from aclnn.base.status import AclnnError, invalid
from aclnn.cases.table import parse
from aclnn.cli import options
from aclnn.cli.files import given_arguments
from aclnn.cli.progress import told
from aclnn.cli.screen import refuse, say, show, width
from aclnn.golden.compare import compare as compare_
from aclnn.golden.join_reports import join as join_
from aclnn.golden.judge.standards import STANDARDS
from aclnn.golden.result import Comparison
from aclnn.golden.show.files import MissingPackageError, check_suffix
from aclnn.golden.show.terminal import lines
from aclnn.golden.steps import SharedWork, parsed_shard


def _option(*names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, **more)


Target = Annotated[Path | None, _option("-tp", "--target", text="A case file, a dump, or a folder of cases.")]
Golden = Annotated[
    Path | None, _option("-gp", "--golden", text="A golden to compare with; without it one is computed.")
]
Out = Annotated[
    list[Path] | None,
    _option("-o", "--out", text="A report: .html, .csv, .json, .xml (JUnit), .xlsx, or a folder. Repeatable."),
]
StandardName = Annotated[
    str | None,
    _option(
        text=f"The accuracy standard: {', '.join(STANDARDS)}. Default: mixed; of a dump: sound.",
        autocompletion=options.standard_names,
    ),
]
Strict = Annotated[bool, _option("--strict", text="The exit code follows soundness, not the standard.")]
Operator = Annotated[
    str | None,
    _option(text="The operator, where the target does not say it.", autocompletion=options.operator_names),
]
Arguments = Annotated[
    list[str] | None, _option("--arg", text="With --op: name=value, or name=file for a tensor. Repeatable.")
]
Dtype = Annotated[
    str | None, _option(text="The row of the standard (float16, bfloat16, float32, hf32); what .bin files are.")
]
Shape = Annotated[str | None, _option(text="The shape of a .bin file, such as 2x3x4.")]
Hints = Annotated[bool, typer.Option(help="Find out why a wrong result is wrong.")]
Only = Annotated[
    list[str] | None, _option("--only", text="An output to compare, others may be missing. Repeatable; default: all.")
]
Limits = Annotated[
    list[str] | None,
    _option(text="A number in place of that of mixed: 1e-3, or for one output gradWeight=1e-3. Repeatable."),
]
CheckGolden = Annotated[bool, _option("--check-golden", text="Hold a golden that agrees against the reference, too.")]
Maps = Annotated[
    list[str] | None,
    _option(
        "--map",
        text="Of a dump of kernels: input.0=gradOutput with --op, or a JSON file of maps by type. Repeatable.",
    ),
]
Hf32 = Annotated[str, _option(text="Of a dump: whether float32 may be HF32: auto, yes or no.")]
NarrowSums = Annotated[
    bool, _option("--narrow-sums", text="Of a dump: convolutions of 16 bits may add up in 16 bits, as on some CPUs.")
]
Attributes = Annotated[Path | None, _option(text="Of a dump: a JSON file with what it does not say of modules.")]
Also = Annotated[Path | None, _option(text="Of a dump: a third party's dump beside it; see two-baselines.")]
Jobs = Annotated[int, _option("-j", "--jobs", text="Of a dump: processes that share its calls.", min=1)]
Shard = Annotated[str, _option(text="Of a dump: only a part of its calls, such as 2/8.")]
Join = Annotated[
    list[Path] | None,
    _option("--join", text="In place of a target: .json reports of all shards, or folders of them. Repeatable."),
]


def compare(
    target: Target = None,
    golden: Golden = None,
    out: Out = None,
    standard: StandardName = None,
    strict: Strict = False,
    op: Operator = None,
    arg: Arguments = None,
    dtype: Dtype = None,
    shape: Shape = None,
    product: options.Product = None,
    hints: Hints = True,
    only: Only = None,
    rtol: Limits = None,
    atol: Limits = None,
    cap: Limits = None,
    check_golden: CheckGolden = False,
    map_: Maps = None,
    hf32: Hf32 = "auto",
    narrow_sums: NarrowSums = False,
    attributes: Attributes = None,
    also: Also = None,
    jobs: Jobs = 1,
    shard: Shard = "1/1",
    join: Join = None,
    lang: options.Lang = None,
) -> None:
    """Compares an NPU result with the float64 reference of its own inputs, or with a golden.

    Of a dump of msprobe every call of ours is judged, and the first wrong one is named with its line of code.
    The verdict is what the standard says; "sound" says whether every element is within what rounding can explain.
    Exit code 0: right; 1: a mismatch, whatever else went wrong; 2: bad input; 3: a failure of our own;
    130: interrupted.
    """
    _refuse_contradictions(target, join, op, arg, out or [])
    given: dict[str, Any] = {"op": op, "product": product}
    given |= {"arguments": given_arguments(ops.find(op), arg or []) if op else {}}
    given |= {"shape": None if shape is None else _sizes(shape), "hints": hints, "only": only or None}
    given |= {"rtol": _limits("rtol", rtol), "atol": _limits("atol", atol), "cap": _limits("cap", cap)}
    given |= {"files": _files(map_), "check_golden": check_golden, "hf32": hf32, "attributes": attributes, "also": also}
    given["narrow_sums"] = narrow_sums
    with told() as tell:
        work = SharedWork(jobs, parsed_shard(shard), tell)
        found = join_(join) if join else compare_(target, golden, dtype, standard, work=work, **given)
    written = _written(found, out or [])
    has_page = any(path.suffix.lower() in ("", ".html") for path in out or [])
    show(lines(found, current(), width(), has_page))
    raise typer.Exit(exit_codes.worst([found.exit_code(strict), written]))


def _refuse_contradictions(
    target: Path | None, join: list[Path] | None, op: str | None, arg: list[str] | None, out: list[Path]
) -> None:
    for path in out:
        check_suffix(path)
    if (target is None) == (not join):
        raise invalid("give a target (-tp), or reports to put together (--join); one of the two.", "target")
    if arg and not op:
        raise invalid("--arg needs --op: without an operator nobody knows what it means.")


def _written(found: Comparison, out: list[Path]) -> int:
    """Writes the reports, each on its own; what cannot be written is said, and the verdict stands."""
    codes = [exit_codes.RIGHT]
    for path in out:
        try:
            for written in found.save(path, asked()):
                say(f"{Text('report: ', '报告：').say()}{written}")
        except MissingPackageError as error:
            refuse(error)
        except AclnnError as error:
            refuse(error)
            codes.append(exit_codes.of(error.code))
    return exit_codes.worst(codes)


def _files(texts: list[str] | None) -> Any:
    """Which file of a kernel is which argument: pairs, or the one file that says it."""
    if not texts or "=" not in texts[0]:
        return texts[0] if texts else None
    pairs = [text.partition("=") for text in texts]
    if not all(sign for _, sign, _ in pairs):
        raise invalid("--map is not of the form input.0=gradOutput.", "map")
    return {part: name for part, _, name in pairs}


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
