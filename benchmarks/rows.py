"""The rows of measurements as files: a line of facts for each process, then a line for each shape.

A line of facts has `process`, `column`, `threads` and the machine; a row `times`, per provider
[20th percentile, median, 80th percentile, readings], in seconds per call, `work`, and the work of the `limit`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read(folder: Path) -> list[Row]:
    """Every row with the facts of its process."""
    found: list[Row] = []
    for file in sorted(folder.glob("*.jsonl")):
        facts: Row = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "operator" in row:
                found.append(facts | row)
            else:
                facts = row
    return found


class Writer:
    """Appends rows to a file that takes the place of the old one when all is there."""

    def __init__(self, path: Path):
        self._path, self._part = path, path.with_suffix(".part")
        self._file = self._part.open("w", encoding="utf-8")

    def write(self, row: Row) -> None:
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def finish(self) -> None:
        self._file.close()
        self._part.replace(self._path)
