"""Everything derived from the contracts: `python -m aclnn.gen` writes it, `--check` says whether it is fresh."""
