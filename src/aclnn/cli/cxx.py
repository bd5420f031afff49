"""`aclnn cxx`: the C++ compiler with everything it needs to know about us."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import typer

from aclnn.capi import prefix
from aclnn.capi.build import compiler
from aclnn.cli import missing
from aclnn.cli.flags import built_prefix
from aclnn.cli.screen import complain, pass_on, say

# Everything is the compiler's, -h included: -pthread would otherwise be read as a request for help.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": ["--help"]}

_COLOURS = re.compile(r"\x1b\[[0-9;]*[mK]")


def cxx(context: typer.Context) -> None:
    """Compiles and links a C++ program: aclnn cxx prog.cpp -o prog [any option of g++]. CXX names another compiler.

    Two options are ours. --sanitize adds the address and the undefined-behaviour sanitizer, and what they have to know
    about Python. --missing FILE compiles nothing: it lists what a program, object or library needs and we do not have.
    """
    given = list(context.args)
    if "--missing" in given:
        given.remove("--missing")
        _list_missing(given)
        return
    sanitize = "--sanitize" in given
    given = [word for word in given if word != "--sanitize"]
    if not given:
        raise typer.BadParameter("name what to compile, for instance: aclnn cxx prog.cpp -o prog")
    command = [*compiler(), *given]
    folder = built_prefix()
    command += prefix.sanitizer_flags(folder, links=not {"-c", "-S", "-E"} & set(given)) if sanitize else []
    command += [*prefix.compile_flags(folder), "-Wl,--no-as-needed", *prefix.link_flags(folder)]
    ended = _compile(command)
    raise typer.Exit(ended if ended >= 0 else 128 - ended)  # as a shell counts signals


def _compile(command: list[str]) -> int:
    """Runs the compiler; if it fails, what it says of names that we do not have is explained."""
    colours = ["-fdiagnostics-color=always"] if sys.stderr.isatty() else []
    ended = subprocess.run([*command, *colours], stderr=subprocess.PIPE)
    text = ended.stderr.decode("utf-8", "replace")
    pass_on(text)
    if ended.returncode != 0:
        for sentence in missing.explain(_COLOURS.sub("", text)):
            complain(f"aclnn: {sentence}")
    return ended.returncode


def _list_missing(files: list[str]) -> None:
    if len(files) != 1:
        raise typer.BadParameter("name one program, object or library, for instance: aclnn cxx --missing prog")
    path = Path(files[0])
    needed = missing.needed_by(path)
    absent = missing.lacking(needed)
    for name in absent:
        say(name)
    ours = missing.provided(needed)
    complain(f"aclnn: {path.name} needs {len(absent) + len(ours)} names of the toolkit; {len(absent)} are not here.")
    raise typer.Exit(1 if absent else 0)
