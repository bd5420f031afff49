"""Reports on disk: csv, json, JUnit xml, xlsx and one self-contained html page, each whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree

from aclnn.base.files import whole_file
from aclnn.base.status import AclnnError, Status, invalid
from aclnn.base.text import cell
from aclnn.golden.result import ERROR, FAIL, SKIPPED, Comparison, DumpComparison, OutputReport
from aclnn.golden.show import page
from aclnn.golden.show.columns import row

_IN_FOLDER = ("report.html", "report.csv", "report.json", "report.xml")
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class MissingPackageError(AclnnError):
    """What a report needs is not installed: that costs the report, never the verdict."""

    def __init__(self, message: str):
        super().__init__(Status.ACLNN_ERR_PARAM_INVALID, message)


def save(found: Comparison, path: Path, lang: str = "en") -> list[Path]:
    """Writes the report that the suffix names; a path without one is a folder and gets one of each kind."""
    if not path.suffix:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise invalid(f"{path} cannot be made: {(error.strerror or str(error)).lower()}.") from None
        return [written for name in _IN_FOLDER for written in save(found, path / name, lang)]
    check_suffix(path)
    with whole_file(path) as file:
        _WRITERS[path.suffix.lower()](found, file, lang)
    return [path]


def check_suffix(path: Path) -> None:
    """Refuses a report of no known kind; the command asks before it compares."""
    if path.suffix and path.suffix.lower() not in _WRITERS:
        raise invalid(f"{path} has the suffix {path.suffix!r}; a report is one of {', '.join(_WRITERS)}, or a folder.")


def _cells(report: OutputReport) -> dict[str, Any]:
    """A row as spreadsheets get it; in xlsx a text is no formula anyway, until someone edits or exports it."""
    return {name: cell(value) for name, value in row(report).items()}


def _heads(rows: list[dict[str, Any]]) -> list[str]:
    """Every column that any row has."""
    return list(dict.fromkeys(head for row in rows for head in row)) or ["case"]


def _save_csv(found: Comparison, file: BinaryIO, lang: str) -> None:
    rows = [_cells(r) for r in found.reports]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, _heads(rows))
    writer.writeheader()
    writer.writerows(rows)
    file.write(text.getvalue().encode())


def _save_json(found: Comparison, file: BinaryIO, lang: str) -> None:
    text = json.dumps(_finite(as_json(found)), indent=1, ensure_ascii=False, allow_nan=False)
    file.write(f"{text}\n".encode())


def as_json(found: Comparison) -> dict[str, Any]:
    """Everything that was found, for other programs."""
    standard, worst = found.standard, found.worst
    told = {"dump": found.source, "shard": list(found.shard)} if isinstance(found, DumpComparison) else {}
    return {
        **told,
        "passed": found.passed,
        "sound": found.sound,
        "standard": {
            "name": standard.name,
            "asks": standard.asks.en,
            "source": standard.source.en,
            "since": standard.since,
            "in_force": dict(found.in_force),
        },
        "worst": None if worst is None else worst._asdict(),
        "outputs": [_output(r) for r in found.reports],
    }


def _output(report: OutputReport) -> dict[str, Any]:
    found = row(report)
    remarks = found.pop("remarks")
    found |= {"shape": list(report.shape), "sound": report.sound, "remarks": remarks}
    if report.why:
        found["why"] = report.why._asdict()
    found["criteria"] = [{"holds": c.holds, **c.text._asdict()} for c in report.criteria]
    found["places"] = [p._asdict() for p in report.places]
    found["hints"] = [{"key": h.key, "says": h.says._asdict(), "proof": h.proof._asdict()} for h in report.hints]
    found["notes"] = [n._asdict() for n in report.notes]
    if report.kind:
        found["code_line"] = report.code_line
        found |= {"reads": list(report.reads), "content": report.content}
    if report.measured is not None:
        ulps = report.measured.ulps
        found["ulp_histogram"] = ulps[: int(ulps.nonzero()[0].max()) + 1].tolist() if ulps.any() else []
        found["listed_misses"] = [vars(miss) for miss in report.measured.listed]
    return found


def _finite(value: Any) -> Any:
    """JSON has no NaN and no Inf: they are written as text."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _save_junit(found: Comparison, file: BinaryIO, lang: str) -> None:
    kinds = {FAIL: "failure", ERROR: "error", SKIPPED: "skipped"}
    count = {kind: sum(r.status == kind for r in found.reports) for kind in kinds}
    suite = ElementTree.Element(
        "testsuite",
        name=f"aclnn compare ({found.standard.name})",
        tests=str(len(found.reports)),
        failures=str(count[FAIL]),
        errors=str(count[ERROR]),
        skipped=str(count[SKIPPED]),
    )
    said = ElementTree.SubElement(suite, "properties")
    for name, value in (("standard", found.standard.name), *found.in_force):
        ElementTree.SubElement(said, "property", name=name, value=value)
    for report in found.reports:
        case = ElementTree.SubElement(
            suite, "testcase", classname=report.operator or "compare", name=_NOT_IN_XML.sub("�", report.label)
        )
        if report.status in kinds:
            message = _NOT_IN_XML.sub("�", row(report)["remarks"])
            ElementTree.SubElement(case, kinds[report.status], message=message)
    ElementTree.indent(suite)
    ElementTree.ElementTree(suite).write(file, encoding="utf-8", xml_declaration=True)


def _save_xlsx(found: Comparison, file: BinaryIO, lang: str) -> None:
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError:
        raise MissingPackageError("an .xlsx report needs openpyxl; install aclnn-cpu[report], or write .csv.") from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet("compare")
    rows = [_cells(r) for r in found.reports]
    heads = _heads(rows)
    for cells in [heads, *([r.get(head, "") for head in heads] for r in rows)]:
        made = []
        for value in cells:
            made_cell = WriteOnlyCell(sheet, _NOT_IN_XML.sub("�", str(value)) if _is_text(value) else value)
            if _is_text(value):
                made_cell.data_type = "s"  # never a formula, whatever it begins with
            made.append(made_cell)
        sheet.append(made)
    book.save(file)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value))


def _save_html(found: Comparison, file: BinaryIO, lang: str) -> None:
    file.write(page.render(found, lang).encode())


_WRITERS: dict[str, Callable[[Comparison, BinaryIO, str], None]] = {
    ".html": _save_html,
    ".csv": _save_csv,
    ".json": _save_json,
    ".xml": _save_junit,
    ".xlsx": _save_xlsx,
}
