"""Dumps of kernels as .npy files: {type}.{name}.{task}.{stream}.{timestamp}.{input|output}.{index}.npy

Task, stream and timestamp differ from run to run, so calls are known by type and name; several of one name by the
order of their timestamps. Which file is which argument, somebody has to say:

{"EluGrad": {"op": "aclnnEluBackward", "map": {"input.0": "gradOutput", "input.1": "selfOrResult",
 "output.0": "gradInput"}, "arguments": {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": false}}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aclnn.base.geometry import Array
from aclnn.base.status import invalid
from aclnn.golden.read import containers, untrusted

_NAME = re.compile(
    r"(?P<type>[^.]+)\.(?P<name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<time>\d+)\.(?P<part>(?:in|out)put\.\d+)\.npy"
)
_PART = re.compile(r"(in|out)put\.\d+")


class KernelMap(NamedTuple):
    """What the files of one type of kernel are."""

    op: str
    names: Mapping[str, str]  # arguments by "input.0", "output.0" …
    arguments: Mapping[str, Any]


Files = dict[str, Path]  # by "input.0", "output.0" …


def calls(folder: Path) -> dict[str, Files]:
    """The calls in a folder by type and name, in order of time; nothing if it has no such files."""
    runs: dict[tuple[str, str], dict[tuple[int, int, int], Files]] = {}
    for path in untrusted.entries(folder):
        found = _NAME.fullmatch(path.name)
        if found is not None:
            when = (int(found["time"]), int(found["task"]), int(found["stream"]))
            runs.setdefault((found["type"], found["name"]), {}).setdefault(when, {})[found["part"]] = path
    named: dict[str, Files] = {}
    for (kind, name), by_time in runs.items():
        for number, when in enumerate(sorted(by_time)):
            named[f"{kind}.{name}" + (f".{number}" if len(by_time) > 1 else "")] = by_time[when]
    return named


def is_meant(name: str, files: Files, maps: Mapping[str, KernelMap]) -> bool:
    """Whether a map speaks of a call: by its type, or where it is for any type by all files of inputs being there."""
    if "" not in maps:
        return name.partition(".")[0] in maps
    return all(part in files for part in maps[""].names if part.startswith("input"))


def read(files: Files, names: Mapping[str, str] | None = None) -> dict[str, Array]:
    """The arrays of a call, by the names of arguments if they are said."""
    wanted = files if names is None else {part: files[part] for part in names if part in files}
    found = {}
    for part, path in wanted.items():
        (array,) = containers.read(path).arrays.values()
        found[part if names is None else names[part]] = containers.as_dtype(array, None, part)
    return found


def maps_from(given: Any, op: str | None, arguments: Mapping[str, Any]) -> Mapping[str, KernelMap]:
    """Maps by type of kernel, from a mapping or a file of JSON; "" is every type, where one operator was named."""
    if given is None:
        return {}
    given, path = untrusted.said(given)
    if not isinstance(given, Mapping) or not given:
        raise invalid(f"{path or 'map'} says nothing of which file is which argument.", "map")
    if all(_PART.fullmatch(str(key)) for key in given):
        if op is None:
            raise invalid("a map of files to arguments needs the operator: name it with --op.", "map")
        return {"": KernelMap(op, {str(k): str(v) for k, v in given.items()}, arguments)}
    return {str(kind): _one(str(kind), said, path) for kind, said in given.items()}


def _one(kind: str, said: Any, path: Path | None) -> KernelMap:
    where = path or "map"
    if not isinstance(said, Mapping) or not isinstance(said.get("op"), str) or not isinstance(said.get("map"), Mapping):
        raise invalid(f"{where}: {kind} is {containers.brief(said)}; it must have an op and a map.", "map")
    odd = [part for part in said["map"] if not _PART.fullmatch(str(part))]
    if odd:
        raise invalid(f"{where}: {kind} maps {odd[0]!r}; files are input.0, input.1 …, output.0 …", "map")
    names = {str(part): str(name) for part, name in said["map"].items()}
    return KernelMap(said["op"], names, dict(said.get("arguments", {})))
