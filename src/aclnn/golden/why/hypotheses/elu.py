"""ELU: flags and scales taken for others."""

from __future__ import annotations

from collections.abc import Iterator

from aclnn.golden.read.casefile import LoadedCase
from aclnn.golden.texts import Text
from aclnn.golden.why.hypotheses.model import Hypothesis, setting


def of(case: LoadedCase) -> Iterator[Hypothesis]:
    call = case.call
    if "isResult" in case.op.by_name:
        asked = call["isResult"]
        yield Hypothesis(
            "is-result",
            Text(
                f"selfOrResult was taken for the forward's {'input' if asked else 'output'}; isResult is {asked}",
                f"selfOrResult被当作正向的{'输入' if asked else '输出'}，而isResult是{asked}",
            ),
            Text(f"with isResult {not asked}", f"以isResult为{not asked}重算"),
            setting("is_result", not asked),
        )
    for name, snake in (("alpha", "alpha"), ("scale", "scale"), ("inputScale", "input_scale")):
        if call[name].value != 1:
            yield Hypothesis(
                f"{name}-ignored",
                Text(f"{name} was ignored", f"忽略了{name}"),
                Text(f"with {name} 1", f"以{name}为1重算"),
                setting(snake, 1.0),
            )
