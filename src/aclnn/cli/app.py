"""The commands, wired together."""

from __future__ import annotations

from typing import Annotated

import typer

from aclnn import __version__
from aclnn.base.language import Text
from aclnn.cli import bench, compare, cxx, describe, environment, flags, run
from aclnn.cli.help import Command, Group, laid_out
from aclnn.cli.options import Lang
from aclnn.cli.screen import say

app = typer.Typer(
    name="aclnn",
    cls=Group,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The aclnn gradient operators on any CPU, exact to their contract.",
    epilog="Example: aclnn describe aclnnEluBackward",
)

_INTRODUCTION = Text(
    f"aclnn {__version__}: the aclnn gradient operators on any CPU.",
    f"aclnn {__version__}：在任意CPU上运行aclnn梯度算子。",
)
_STEPS = {
    "aclnn ops": Text("what there is", "有哪些算子"),
    "aclnn describe aclnnEluBackward": Text(
        "arguments, rules and codes of one operator (--lang zh for Chinese)",
        "一个算子的参数、规则和返回码（--lang en为英文）",
    ),
    "aclnn run aclnnEluBackward --check -o out": Text(
        "run one operator, or a table of cases (.csv), and check the results",
        "执行一个算子或一张用例表（.csv），并核对结果",
    ),
    "aclnn compare -tp out": Text(
        "is a result or a dump right, and if not, where and why", "结果或dump是否正确；如有错误，在哪里、为什么"
    ),
    "aclnn cxx prog.cpp -o prog": Text(
        "compile a C++ aclnn program; ./prog runs with no NPU", "编译aclnn的C++程序；./prog无需NPU即可运行"
    ),
    "aclnn bench elu": Text(
        "how fast it is here, beside PyTorch (in a checkout)", "本机速度，与PyTorch对照（在代码目录中）"
    ),
    "aclnn env": Text("what this machine has; paste it into a bug report", "本机环境；反馈问题时请附上"),
}
_MORE = Text(
    "`aclnn COMMAND --help` ends with an example; `aclnn --install-completion` completes commands, options and their "
    "values.",
    "`aclnn 命令 --help`末尾有示例；`aclnn --install-completion`可补全命令、选项及其值。",
)


@app.callback(invoke_without_command=True)
def first(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    lang: Lang = None,
) -> None:
    if version:
        say(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        steps = [(command, text.say()) for command, text in _STEPS.items()]
        say(laid_out([_INTRODUCTION.say(), "", steps, "", _MORE.say()]))


for _name, _run, _example in (
    ("ops", describe.ops_command, "aclnn ops"),
    ("describe", describe.describe, "aclnn describe aclnnEluBackward --lang zh"),
    ("run", run.run, "aclnn run aclnnEluBackward --check -o out"),
    ("compare", compare.compare, "aclnn compare -tp out/elu_backward.npz -o report.html"),
    ("bench", bench.bench, "aclnn bench elu --columns given --processes 2"),
    ("flags", flags.flags, "aclnn flags --cflags --libs"),
    ("env", environment.env, "aclnn env"),
):
    app.command(_name, cls=Command, epilog=f"Example: {_example}")(_run)
app.command(
    "cxx",
    cls=Command,
    context_settings=cxx.CONTEXT,
    options_metavar="PROG.cpp -o PROG [--sanitize] [g++ …]",
    epilog="Example: aclnn cxx examples/cpp/elu.cpp -o elu",
)(cxx.cxx)
