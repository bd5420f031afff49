"""`aclnn flags`: where the C++ door is, in the words of compilers, linkers and shells."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from aclnn.capi import build, install, prefix
from aclnn.cli.screen import complain, errors, say

_NOTICE = "building the C++ library for this Python, once"


def flags(
    show_prefix: Annotated[
        bool, typer.Option("--prefix", help="The folder with include, lib64 and set_env.sh.")
    ] = False,
    cflags: Annotated[bool, typer.Option("--cflags", help="What the compiler needs.")] = False,
    libs: Annotated[bool, typer.Option("--libs", help="What the linker needs.")] = False,
    env: Annotated[bool, typer.Option("--env", help="Lines for a shell: eval them, or source set_env.sh.")] = False,
    install_to: Annotated[
        Path | None,
        typer.Option("--install", metavar="DIR", help="Lay out a whole toolkit folder there, with pyACL."),
    ] = None,
    uninstall_from: Annotated[
        Path | None, typer.Option("--uninstall", metavar="DIR", help="Remove what --install has put there.")
    ] = None,
) -> None:
    """Prints how to compile and link C++ programs. The library is built on first use and kept."""
    if not (show_prefix or cflags or libs or env or install_to or uninstall_from):
        raise typer.BadParameter("choose at least one of --prefix, --cflags, --libs, --env, --install and --uninstall.")
    if uninstall_from is not None:
        _uninstall(uninstall_from)
    if not (show_prefix or cflags or libs or env or install_to):
        return
    folder = built_prefix()
    if install_to is not None:
        folder = _install(folder, install_to)
    if show_prefix:
        say(str(folder))
    words = [*(prefix.compile_flags(folder) if cflags else ()), *(prefix.link_flags(folder) if libs else ())]
    if words:
        say(shlex.join(words))
    if env:
        say(prefix.environment(folder, installed=install_to is not None), end="")


def _install(built: Path, target: Path) -> Path:
    folder = install.install(built, target)
    count, script = len(install.listed(folder)), shlex.quote(str(folder / "set_env.sh"))
    complain(f"aclnn: {count} files in {folder}; in a shell: . {script}")
    return folder


def _uninstall(target: Path) -> None:
    left = install.uninstall(target)
    others = f"; files of others stay ({len(left)}), {left[0]} the first" if left else ""
    complain(f"aclnn: removed from {target}{others}.")


def built_prefix() -> Path:
    """The prefix; if it has to be built first, with a bar on a terminal and two lines in a log."""
    if build.is_built():
        return build.build()
    if not errors.is_terminal:
        return _build_with_lines()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(_NOTICE, total=None)
        return build.build(lambda done, total: bar.update(task, completed=done, total=total))


def _build_with_lines() -> Path:
    complain(f"aclnn: {_NOTICE} …")
    began = time.monotonic()
    folder = build.build()
    complain(f"aclnn: built in {time.monotonic() - began:.0f} s, kept in {folder}")
    return folder
