"""The rows of measurements as files: a line of facts for each process, then a line for each shape.

A line of facts has `run`, when it began, `process`, `column`, `threads` and the machine; a row `times`, per provider
[20th percentile, median, 80th percentile, readings], in seconds per call, `work`, and the work of the `limit`; `load`,
the cores that others used, and `apart`, the nanoseconds of a cache line from one core to another and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
FACTS = ("run", "process", "processor", "cores", "date", "isa", "bfloat16", "versions", "column", "threads")


def read(folder: Path) -> list[Row]:
    """Every row with the facts of its process, and the instruction set that the folder is of."""
    level = folder.name.rsplit("-", 1)[-1]
    return [row | {"isa": level} for file in sorted(folder.glob("*.jsonl")) for row in _rows_of(file)]


def machines(results: Path) -> dict[str, list[Row]]:
    """The rows of every folder that has some, the newest machine first, AVX2 before AVX-512."""
    found = {folder.name: rows for folder in sorted(results.iterdir()) if folder.is_dir() and (rows := read(folder))}
    newest = {of(name): max(r.get("date", "") for n in found for r in found[n] if of(n) == of(name)) for name in found}
    return {name: found[name] for name in sorted(found, key=lambda name: newest[of(name)], reverse=True)}


def of(folder: str) -> str:
    """The machine that a folder is of."""
    return folder.rsplit("-", 1)[0]


def _rows_of(file: Path) -> Iterator[Row]:
    facts: Row = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "operator" in row:
            yield facts | row
        else:
            facts = row


class Writer:
    """Keeps a file of rows up to date, row by row: the first new row of a shape and dtype takes the place of those of
    earlier runs, all others stay. So an interrupted run loses nothing, and a single shape can be measured again. A run
    that is resumed with a process drops what that one had written."""

    def __init__(self, path: Path, run: str = "", process: int = 0):
        self._path, self._facts, self._run = path, Row(), run
        rows = _rows_of(path) if path.is_file() else ()
        self._rows = [row for row in rows if row.get("run") != run or row["process"] < process]

    def write(self, row: Row) -> None:
        if "operator" not in row:
            self._facts = row | {"run": self._run}
            return
        key = row["shape"], row["dtype"]
        self._rows = [r for r in self._rows if (r["shape"], r["dtype"]) != key or r.get("run") == self._run]
        self._rows.append(self._facts | row)
        part = self._path.with_suffix(".part")
        part.write_text("".join(self._lines()), encoding="utf-8")
        part.replace(self._path)

    def _lines(self) -> Iterator[str]:
        last: Row = {}
        for row in self._rows:
            facts = {name: value for name, value in row.items() if name in FACTS}
            if facts != last:
                yield json.dumps(facts) + "\n"
            yield json.dumps({name: value for name, value in row.items() if name not in FACTS}) + "\n"
            last = facts
