"""The `aclnn` command. Each command is a thin layer over what does the work."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point: every refusal becomes one sentence on stderr and exit code 2."""
    from aclnn.base.status import AclnnError
    from aclnn.cli.app import app

    try:
        app()
    except AclnnError as error:
        print(f"aclnn: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # `aclnn … | head`
        sys.stderr.close()
        sys.exit(0)
