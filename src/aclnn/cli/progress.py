"""How far a dump is: a bar with the time that is left on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from aclnn.base.language import Text
from aclnn.base.layout import fold
from aclnn.base.text import visible
from aclnn.cli.screen import complain, errors
from aclnn.golden.dumps import Judgement
from aclnn.golden.result import ERROR, FAIL, broken_criterion, miss_sentence
from aclnn.golden.steps import Told

_EVERY = 30.0  # seconds between lines in a log


@contextmanager
def told() -> Iterator[Told]:
    """What is called with every judgement; wrong calls are shown as they are found."""
    if errors.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
            task = bar.add_task(Text("judging", "判断中").say(), total=1.0, visible=False)

            def on_a_terminal(judgement: Judgement, part: float) -> None:
                bar.update(task, completed=part, visible=True)
                for line in _wrong(judgement):
                    for folded in fold(line, errors.width):
                        bar.console.print(folded, soft_wrap=True)

            yield on_a_terminal
    else:
        yield _in_a_log()


def _in_a_log() -> Told:
    start = last = time.monotonic()

    def tell(judgement: Judgement, part: float) -> None:
        nonlocal last
        for line in _wrong(judgement):
            complain(line)
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            left = (now - start) * (1 - part) / max(part, 1e-9)
            complain(f"{100 * part:.0f} %, about {left:.0f} s left")

    return tell


def _wrong(judgement: Judgement) -> Iterator[str]:
    for report in judgement.reports:
        if report.status in (FAIL, ERROR):
            said = miss_sentence(report) or report.why or broken_criterion(report)
            place = f" ({report.line})" if report.line else ""
            wrong = Text("wrong: ", "错误：").say()
            yield visible(f"{wrong}{report.label}{place}: {said.say() if said else ''}")
