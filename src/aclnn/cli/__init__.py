"""The `aclnn` command. Each command is a thin layer over what does the work."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The entry point: whatever happens is one sentence on stderr and an exit code, never a traceback."""
    try:
        sys.exit(_ended())
    except KeyboardInterrupt:  # before the command began, while modules were being imported
        from aclnn.base import exit_codes
        from aclnn.cli import screen

        screen.complain("aclnn: interrupted")
        sys.exit(exit_codes.INTERRUPTED)


def _ended() -> int:
    from aclnn.base import exit_codes, language
    from aclnn.cli import screen

    try:
        code = _run()
    finally:
        language.choose(None)  # what was chosen for one run is not for the next one in this process
    said = screen.flush()
    return exit_codes.OURS if code == exit_codes.RIGHT and not said else code


def _run() -> int:
    from aclnn.base import exit_codes
    from aclnn.base.status import AclnnError
    from aclnn.cli import screen

    try:
        screen.prepare()
        return int(_command() or exit_codes.RIGHT)
    except SystemExit as ended:
        return _code_of(ended.code)
    except AclnnError as error:
        screen.refuse(error)
        return exit_codes.of(error.code)
    except KeyboardInterrupt:
        screen.complain("aclnn: interrupted")
        return exit_codes.INTERRUPTED
    except Exception as error:
        _confess(error)
        return exit_codes.OURS


def _command() -> int | None:
    """What the command ends with; a wrong use of it is shown with its usage."""
    import typer

    from aclnn.base import exit_codes
    from aclnn.cli import screen
    from aclnn.cli.app import app

    try:
        return app(standalone_mode=False)  # type: ignore[no-any-return]
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer does not show its ClickException
            raise
        screen.complain(screen.usage_of(error))
        return exit_codes.BAD_INPUT


def _code_of(code: object) -> int:
    from aclnn.base import exit_codes
    from aclnn.cli import screen

    if code is None or isinstance(code, int):
        return int(code or exit_codes.RIGHT)
    screen.complain(str(code))
    return exit_codes.OURS


def _confess(error: Exception) -> None:
    """A failure of our own: one sentence, and where it happened for those who ask."""
    import traceback

    from aclnn.base.status import reason
    from aclnn.cli import screen

    screen.complain(f"aclnn: this should not happen, please report it: {reason(error)}.")
    if os.environ.get("ACLNN_VERBOSE", "0") not in ("", "0"):
        screen.pass_on("".join(traceback.format_exception(error)))
    else:
        screen.complain("aclnn: ACLNN_VERBOSE=1 shows where.")
