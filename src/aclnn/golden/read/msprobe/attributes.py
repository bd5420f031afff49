"""What a dump does not say of modules, said by somebody: stride, padding, batch_first, alpha, dropout, by their names.

{"encoder.conv": {"stride": 2, "padding": [1, 1]}, "decoder.lstm": {"batch_first": true, "dropout": 0.0}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aclnn.base.status import invalid
from aclnn.golden.read import containers, untrusted

KNOWN = {
    *("stride", "padding", "dilation", "groups", "output_padding", "padding_mode"),
    *("alpha", "inplace", "batch_first", "dropout"),
}


def attributes_beside(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Attributes that lie beside dump.json, as those who recorded the step left them there."""
    path = folder / "attributes.json"
    return {} if untrusted.is_missing(path) else attributes_from(path)


def attributes_from(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """Attributes as a mapping, or from a file of JSON; a sentence where it is not what it should be."""
    if given is None:
        return {}
    given, path = untrusted.said(given)
    where = path or "attributes"
    if not isinstance(given, Mapping):
        raise invalid(f"{where} is no JSON object with the names of modules.", "attributes")
    for name, said in given.items():
        if not isinstance(said, Mapping):
            raise invalid(
                f"{where}: {name} is {containers.brief(said)}; it must be an object of attributes.", "attributes"
            )
        strangers = said.keys() - KNOWN
        if strangers:
            known = ", ".join(sorted(KNOWN))
            raise invalid(f"{where}: {name} has {min(strangers)!r}; attributes are {known}.", "attributes")
    return {str(name).removeprefix("Module."): dict(said) for name, said in given.items()}
