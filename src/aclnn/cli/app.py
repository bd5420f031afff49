"""The commands, wired together."""

from __future__ import annotations

from typing import Annotated

import typer

from aclnn import __version__
from aclnn.cli import compare, cxx, describe, environment, flags, run

app = typer.Typer(
    name="aclnn",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The aclnn gradient operators on any CPU, exact to their contract.",
)

_FIRST_STEPS = """aclnn {version}: the aclnn gradient operators on any CPU.

  aclnn ops                                what there is
  aclnn describe aclnnEluBackward          arguments, rules and codes of one operator (--lang zh for Chinese)
  aclnn run examples/cases.csv --check     run a table of cases and check every result
  aclnn cxx sample.cpp -o sample           compile a C++ aclnn program; ./sample runs with no NPU
  aclnn compare -tp out                    is a result right, and if not, where and why
  aclnn env                                what this machine has; paste it into a bug report

aclnn COMMAND --help ends with an example that runs."""


@app.callback(invoke_without_command=True)
def first(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(_FIRST_STEPS.format(version=__version__))


app.command("ops", epilog="Example: aclnn ops")(describe.ops_command)
app.command("describe", epilog="Example: aclnn describe aclnnEluBackward --lang zh")(describe.describe)
app.command("run", epilog="Example: aclnn run examples/cases.csv --check -o out")(run.run)
app.command("compare", epilog="Example: aclnn compare -tp out/003_elu_backward.npz -o report.html")(compare.compare)
app.command("flags", epilog="Example: aclnn flags --cflags --libs")(flags.flags)
app.command("cxx", context_settings=cxx.CONTEXT, epilog="Example: aclnn cxx prog.cpp -o prog")(cxx.cxx)
app.command("env", epilog="Example: aclnn env")(environment.env)
