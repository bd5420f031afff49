"""The commands, wired together."""

from __future__ import annotations

from typing import Annotated

import typer

from aclnn import __version__
from aclnn.cli import bench, compare, cxx, describe, environment, flags, run
from aclnn.cli.screen import say

app = typer.Typer(
    name="aclnn",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The aclnn gradient operators on any CPU, exact to their contract.",
    epilog="Example: aclnn describe aclnnEluBackward",
)

_FIRST_STEPS = """aclnn {version}: the aclnn gradient operators on any CPU.

  aclnn ops                                   what there is
  aclnn describe aclnnEluBackward             arguments, rules and codes of one operator (--lang zh for Chinese)
  aclnn run aclnnEluBackward --check -o out   run one operator, or a table of cases (.csv), and check the results
  aclnn compare -tp out                       is a result or a dump right, and if not, where and why
  aclnn cxx prog.cpp -o prog                  compile a C++ aclnn program; ./prog runs with no NPU
  aclnn bench elu                             how fast it is here, beside PyTorch (in a checkout)
  aclnn env                                   what this machine has; paste it into a bug report

`aclnn COMMAND --help` ends with an example; `aclnn --install-completion` completes commands, options and operators."""


@app.callback(invoke_without_command=True)
def first(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        say(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(_FIRST_STEPS.format(version=__version__))


app.command("ops", epilog="Example: aclnn ops")(describe.ops_command)
app.command("describe", epilog="Example: aclnn describe aclnnEluBackward --lang zh")(describe.describe)
app.command("run", epilog="Example: aclnn run aclnnEluBackward --check -o out")(run.run)
app.command("compare", epilog="Example: aclnn compare -tp out/elu_backward.npz -o report.html")(compare.compare)
app.command("bench", epilog="Example: aclnn bench elu --columns given --processes 2")(bench.bench)
app.command("flags", epilog="Example: aclnn flags --cflags --libs")(flags.flags)
app.command("cxx", context_settings=cxx.CONTEXT, epilog="Example: aclnn cxx examples/cpp/elu.cpp -o elu")(cxx.cxx)
app.command("env", epilog="Example: aclnn env")(environment.env)
