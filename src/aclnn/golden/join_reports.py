"""Reports of the parts of a dump, put together: what `aclnn compare --shard i/n -o part.json` wrote on n machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aclnn.base.status import invalid
from aclnn.golden.inherited import link
from aclnn.golden.judge import standards
from aclnn.golden.judge.baselines import Beside, Errors
from aclnn.golden.judge.blocks import SPECIALS, Miss
from aclnn.golden.judge.metrics import Measured
from aclnn.golden.judge.standards import Criterion, StandardRule
from aclnn.golden.read import untrusted
from aclnn.golden.result import STATUS, DumpComparison, OutputReport
from aclnn.golden.texts import Text
from aclnn.golden.why.explain import Hint

LONGEST_REPORT = 256 * 2**20  # bytes


def join(paths: Sequence[Path]) -> DumpComparison:
    """One answer of several reports; a part that is missing or there twice is a sentence, not a smaller answer."""
    files = [file for path in paths for file in _files(path)]
    found = [(file, _read(file)) for file in files]
    if not found:
        raise invalid("there is no report to join; name .json reports or folders of them.", "join")
    names = {told["standard"]["name"] for _, told in found}
    if len(names) > 1:
        raise invalid(f"the reports are of different standards ({', '.join(sorted(names))}).", "join")
    _refuse_gaps(found)
    reports: list[OutputReport] = []
    for file, told in found:
        with untrusted.refusals(file):
            reports += [_report(output) for output in told["outputs"]]
    link(reports)
    return DumpComparison(standards.find(names.pop()), reports, str(found[0][1].get("dump", "")))


def _files(path: Path) -> list[Path]:
    return [p for p in untrusted.entries(path) if p.suffix == ".json"] if untrusted.is_folder(path) else [path]


def _read(path: Path) -> dict[str, Any]:
    text = untrusted.text(path, LONGEST_REPORT)
    with untrusted.refusals(path):
        told: dict[str, Any] = untrusted.parsed(text, LONGEST_REPORT)
        named = isinstance(told, dict) and isinstance(told.get("standard"), dict) and "name" in told["standard"]
        if not named or not isinstance(told.get("outputs"), list) or "shard" not in told:
            raise ValueError("it is no report of a dump that aclnn compare wrote")
        part, of = told["shard"]
        if not (isinstance(part, int) and isinstance(of, int)):
            raise ValueError("it does not say which part it is of")
        return told


def _refuse_gaps(found: Sequence[tuple[Path, dict[str, Any]]]) -> None:
    (_, of), *_ = (told["shard"] for _, told in found)
    seen: dict[int, Path] = {}
    for file, told in found:
        part, whole = told["shard"]
        if whole != of:
            raise invalid(f"{file} is of {whole} parts, {found[0][0]} of {of}.", "join")
        if part in seen:
            raise invalid(f"{file} and {seen[part]} are both part {part}/{of}.", "join")
        seen[part] = file
    missing = [f"{part}/{of}" for part in range(1, min(of, 10_000) + 1) if part not in seen]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise invalid(f"of the parts {', '.join(missing[:5])}{more} no report is there.", "join")


def _text(value: Any) -> Text:
    return Text(str(value["en"]), str(value["zh"]))


def _report(told: dict[str, Any]) -> OutputReport:
    if told["verdict"] not in STATUS:
        raise ValueError(f"a verdict is {told['verdict']!r}")
    report = OutputReport(str(told["case"]), str(told["output"]), told["verdict"], operator=str(told["operator"]))
    report.why = _text(told["why"]) if "why" in told else None
    report.sound, report.dtype = told["sound"], str(told["dtype"])
    report.shape = tuple(int(n) for n in told["shape"])
    report.criteria = tuple(Criterion(bool(c["holds"]), _text(c)) for c in told["criteria"])
    report.places, report.notes = (tuple(map(_text, told[name])) for name in ("places", "notes"))
    report.hints = tuple(Hint(str(h["key"]), _text(h["says"]), _text(h["proof"])) for h in told["hints"])
    report.kind, report.order, report.line = str(told["call"]), int(told["order"]), str(told["line"])
    report.code_line, report.content = str(told.get("code_line", "")), str(told.get("content", ""))
    report.reads = tuple(map(str, told.get("reads", ())))
    if told.get("two_baselines"):
        each = (tuple(float(told[f"{which}_{key}"]) for key in Errors._fields) for which in ("also", "ratio"))
        report.also = Beside(*(Errors(*numbers) for numbers in each))
    if told["elements"] != "":
        report.rule = StandardRule(str(told["standard"]), str(told["row"]), 0.0, 0.0, str(told["tolerances"]))
        report.measured = _measured(told, report.shape)
    return report


def _measured(told: dict[str, Any], shape: tuple[int, ...]) -> Measured:
    """The numbers of a report; sums are such that they give its means and angles again."""
    found = Measured(shape, np.zeros(0, np.int64), int(told["elements"]), in_tolerance=int(told["in_tolerance"]))
    for name in (*SPECIALS, "misses"):
        setattr(found, name, int(told[name]))
    found.max_abs, found.max_rel = float(told["max_abs"]), float(told["max_rel"])
    found.sum_abs, found.sum_rel = (found.count * float(told[name]) for name in ("mean_abs", "mean_rel"))
    found.squares = found.count * float(told["rmse"]) ** 2
    golden = found.squares * 4.0 ** float(told["effective_bits"]) if found.squares else 1.0
    found.dots = np.array([float(told["cosine"]) * golden, golden, golden])
    histogram = np.array(told.get("ulp_histogram", []), np.int64)
    found.ulps[: len(histogram)] = histogram
    found.listed = [
        Miss(tuple(m["index"]), float(m["target"]), float(m["golden"]), float(m["ratio"]))
        for m in told.get("listed_misses", [])
    ]
    if told["worst_ratio"] != "":
        index = tuple(int(n) for n in str(told["worst_index"]).split())
        found.worst = Miss(index, *(float(told[f"worst_{name}"]) for name in ("target", "golden", "ratio")))
    return found
