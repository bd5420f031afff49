"""`python -m aclnn`: the `aclnn` command where it is not on the PATH."""

from aclnn.cli import main

main()
