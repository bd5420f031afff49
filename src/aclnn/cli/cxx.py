"""`aclnn cxx`: the C++ compiler with everything it needs to know about us."""

from __future__ import annotations

import subprocess

import typer

from aclnn.capi import prefix
from aclnn.capi.build import compiler
from aclnn.cli.flags import built_prefix

# Everything is the compiler's, -h included: -pthread would otherwise be read as a request for help.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": ["--help"]}


def cxx(context: typer.Context) -> None:
    """Compiles and links a C++ program: aclnn cxx prog.cpp -o prog [any option of g++]. CXX names another compiler."""
    if not context.args:
        raise typer.BadParameter("name what to compile, for instance: aclnn cxx prog.cpp -o prog")
    command = [*compiler(), *context.args]
    folder = built_prefix()
    command += [*prefix.compile_flags(folder), *prefix.link_flags(folder)]
    ended = subprocess.run(command).returncode
    raise typer.Exit(ended if ended >= 0 else 128 - ended)  # as a shell counts signals
