"""Files that commands take tensors from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aclnn.base.status import invalid
from aclnn.golden import containers


def load_array(path: str) -> Any:
    """The one array of a file; bfloat16 saved by numpy (|V2) is read as what it is."""
    arrays = containers.read(Path(path)).arrays
    if len(arrays) != 1:
        raise invalid(f"{path} has {len(arrays)} arrays ({', '.join(arrays) or 'none'}); it must have one.")
    (name, array), *_ = arrays.items()
    return containers.as_dtype(array, None, name)
