"""What there is to compare: a case file, a folder of dumps, or arrays at hand.

A folder is one case if it has a `case.json` (the text that case files keep under `__case__`) or the operator is named;
its tensors are files by vendor name: gradOutput.npy, params.0.bin … Otherwise it is a folder of cases: case files,
and folders with a `case.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any

from aclnn import ops
from aclnn.base.dtype import DType
from aclnn.base.foreign_arrays import adopt
from aclnn.base.geometry import Array
from aclnn.base.status import AclnnError, invalid, ours
from aclnn.base.tensor import Tensor
from aclnn.contract.model import Op
from aclnn.golden.read import casefile, containers, kernel_dumps, untrusted
from aclnn.golden.read.casefile import Description, LoadedCase
from aclnn.golden.read.containers import Contents
from aclnn.golden.read.kernel_dumps import KernelMap

CASE_FILES = (".npz", ".safetensors")
DESCRIPTION = "case.json"


@dataclass(frozen=True)
class Hand:
    """What the caller says beside the files: the operator and its arguments, and what bare bytes mean."""

    op: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    product: str | None = None
    dtype: DType | None = None
    shape: tuple[int, ...] | None = None
    maps: Mapping[str, KernelMap] = field(default_factory=dict)

    @property
    def layout(self) -> dict[str, Any]:
        """What bare bytes mean, as a case file says it."""
        said = {"dtype": self.dtype and self.dtype.name, "shape": self.shape}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True)
class Subject:
    """One thing to compare: targets by output name, goldens that were given, the call if it is known."""

    name: str
    targets: Mapping[str, Array | None] = field(default_factory=dict)
    goldens: Mapping[str, Array] | None = None
    case: LoadedCase | None = None
    unasked: tuple[str, ...] = ()  # outputs that are there although the call does not ask for them
    error: AclnnError | None = None
    of_many: bool = False  # what is wrong with it is said in its place, and the others go on


def subjects(target: Any, golden: Any, hand: Hand) -> Iterator[Subject]:
    """Everything that `target` stands for. What is wrong with one case of many is said in its place."""
    if not isinstance(target, (str, Path)):
        yield _subject("target", _at_hand(target, "target", hand), golden, hand, Path("target"))
        return
    yield from _of_path(Path(target), golden, hand)


def _of_path(path: Path, golden: Any, hand: Hand) -> Iterator[Subject]:
    """What a file or a folder holds."""
    found = kernel_dumps.calls(path) if untrusted.is_folder(path) else {}
    if found:
        yield from _of_kernels(path, found, golden, hand)
    elif untrusted.is_folder(path) and not hand.op and untrusted.is_missing(path / DESCRIPTION):
        yield from _of_folder(path, golden, hand)
    else:
        path = path.parent if path.name == DESCRIPTION else path
        yield _subject(path.name, _contents(path), golden, hand, path)


def _of_folder(path: Path, golden: Any, hand: Hand) -> Iterator[Subject]:
    cases = _cases(path)
    if not cases and golden is None:
        raise invalid(f"{path} has no case file and no {DESCRIPTION}; name the operator, or give a golden.")
    if not cases:
        yield _subject(path.name, _contents(path), golden, hand, path)
    elif not isinstance(golden, (str, Path, NoneType)):
        raise invalid(f"{path} is a folder of cases; its golden must be a folder too, not arrays.")
    for entry in cases:
        other = Path(golden) / entry.name if golden is not None else None
        yield from (replace(s, name=entry.name, of_many=True) for s in _guarded(entry, other, hand))


def _of_kernels(path: Path, calls: Mapping[str, kernel_dumps.Files], golden: Any, hand: Hand) -> Iterator[Subject]:
    """Files of kernels: as calls of operators where somebody says what is what, else beside another such dump."""
    if hand.maps:
        yield from _mapped(path, calls, hand)
        return
    if not isinstance(golden, (str, Path)) or not untrusted.is_folder(Path(golden)):
        raise invalid(f"{path} has files of kernels; say which is which argument (--map), or give another dump (-gp).")
    others = kernel_dumps.calls(Path(golden))
    for name, files in calls.items():
        try:
            if name not in others:
                raise invalid(f"{name} is not in the golden {golden}.")
            targets = {n: a for n, a in kernel_dumps.read(files).items() if n.startswith("output")}
            goldens = {n: a for n, a in kernel_dumps.read(others[name]).items() if n.startswith("output")}
            yield replace(_plain(name, Contents(targets), goldens, hand, path), of_many=True)
        except Exception as error:
            yield Subject(name, error=ours(error), of_many=True)


def _mapped(path: Path, calls: Mapping[str, kernel_dumps.Files], hand: Hand) -> Iterator[Subject]:
    known = {n: f for n, f in calls.items() if kernel_dumps.is_meant(n, f, hand.maps)}
    if not known:
        have = ", ".join(sorted({n.partition(".")[0] for n in calls}))
        raise invalid(
            f"{path} has kernels of the types {have}; the map speaks of {', '.join(hand.maps) or 'others'}.", "map"
        )
    for name, files in known.items():
        said = hand.maps.get(name.partition(".")[0]) or hand.maps[""]
        mine = replace(hand, op=said.op, arguments=said.arguments)
        try:
            contents = Contents(kernel_dumps.read(files, said.names))
            yield replace(_subject(name, contents, None, mine, path), of_many=True)
        except Exception as error:
            yield Subject(name, error=ours(error), of_many=True)


def _cases(path: Path) -> list[Path]:
    """The cases in a folder, each once: a link to another of them is the same case."""
    found = [p for p in untrusted.entries(path) if _is_case(p)]
    once = {untrusted.identity(p): p for p in sorted(found, key=lambda p: not p.is_symlink())}  # the last one stays
    return sorted(once.values())


def _is_case(path: Path) -> bool:
    if untrusted.is_folder(path):
        return not untrusted.is_missing(path / DESCRIPTION)
    return path.suffix.lower() in CASE_FILES and not path.name.startswith(".")


def _guarded(target: Path, golden: Path | None, hand: Hand) -> Iterator[Subject]:
    """One of many, whatever is wrong with it."""
    try:
        yield from _of_path(target, golden, hand)
    except Exception as error:
        yield Subject(target.name, error=ours(error))


def _contents(path: Path) -> Contents:
    """The arrays of a file, or of all array files in a folder, with the case they are of."""
    if not untrusted.is_folder(path):
        return containers.read(path)
    arrays: dict[str, Array] = {}
    raw: frozenset[str] = frozenset()
    for file in (p for p in untrusted.entries(path) if p.suffix.lower() in containers.SUFFIXES):
        found = containers.read(file)
        if twice := arrays.keys() & found.arrays.keys():
            raise invalid(f"{path} has two files with a tensor {min(twice)}.")
        arrays |= found.arrays
        raw |= found.raw
    if not arrays:
        raise invalid(f"{path} has no file of arrays; it needs some of {', '.join(containers.SUFFIXES)}.")
    description = path / DESCRIPTION
    text = None if untrusted.is_missing(description) else untrusted.text(description, untrusted.LONGEST_JSON)
    return Contents(arrays, text, raw)


def _at_hand(value: Any, name: str, hand: Hand) -> Contents:
    """Arrays that are already in memory: one, several by name, or the outputs of the operator in their order."""
    if isinstance(value, Contents):
        return value
    if isinstance(value, Mapping):
        return Contents({key: array for n, v in value.items() for key, array in _named(str(n), v)})
    if not hand.op:
        return Contents(dict(_named(name, value)))
    outputs = ops.find(hand.op).outputs
    several = isinstance(value, (tuple, list))
    parts = list(value) if several else [value]
    if len(parts) != len(outputs):
        count = f"has {len(parts)} parts" if several else "is one array"
        names = ", ".join(a.name for a in outputs)
        raise invalid(f"the {name} {count}; {hand.op} has {len(outputs)} outputs: {names}.")
    return _at_hand({a.name: v for a, v in zip(outputs, parts, strict=True)}, name, hand)


def _named(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    if isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            yield from _named(f"{name}.{i}", one)
    elif value is not None:
        view = adopt(value, name).view if not isinstance(value, Tensor) else value.view
        assert view is not None
        yield name, view


def _subject(name: str, contents: Contents, golden: Any, hand: Hand, path: Path) -> Subject:
    described = _described(contents, hand, path)
    goldens = None if golden is None else _goldens(golden, hand)
    if described is None:
        return _plain(name, contents, goldens, hand, path)
    arrays = _with_inputs_at_hand(described, contents, hand)
    case = casefile.build(described, arrays, path)
    targets = dict(flat(case.op, case.targets))
    if all(t is None for t in targets.values()):
        outputs = ", ".join(a.name for a in case.op.outputs)
        raise invalid(f"{path} has no output that {case.op.name} computes in this call; its outputs are {outputs}.")
    paired = None if goldens is None else _paired(targets, goldens, path)
    return Subject(name, targets, paired, case, tuple(_unasked(case, arrays)))


def _unasked(case: LoadedCase, arrays: Mapping[str, Array]) -> Iterator[str]:
    present = {name.partition(".")[0] for name in arrays}
    for arg in case.op.outputs:
        if case.call[arg.name] is None and present & {arg.name, arg.snake}:
            yield arg.name


def _described(contents: Contents, hand: Hand, path: Path) -> Description | None:
    """What the file says it is, or what the caller says it is."""
    in_file = None if contents.case is None else casefile.describe(contents.case, path)
    layouts = dict(in_file.tensors) if in_file else {}
    if hand.dtype is not None:
        layouts |= {name: hand.layout for name in contents.raw if name not in layouts}
    if hand.op:
        op = ops.find(hand.op)
        tensors = {n for a in op.tensors for n in (a.name, a.snake)}
        attributes = {n: v for n, v in hand.arguments.items() if n not in tensors}
        return Description(op.name, attributes, hand.product, layouts)
    return in_file and replace(in_file, product=hand.product or in_file.product, tensors=layouts)


def _with_inputs_at_hand(described: Description, contents: Contents, hand: Hand) -> dict[str, Array]:
    op = ops.find(described.operator)
    tensors = {n for a in op.tensors for n in (a.name, a.snake)}
    inputs = {key: a for n, v in hand.arguments.items() if n in tensors for key, a in _named(n, v)}
    arrays = dict(contents.arrays)
    if hand.op and len(arrays) == 1 and len(op.outputs) == 1 and not arrays.keys() & tensors:
        arrays = {op.outputs[0].name: next(iter(arrays.values()))}  # a bare file is the only output there is
    for name in contents.raw & arrays.keys():
        is_input = any(name.partition(".")[0] in (a.name, a.snake) for a in op.inputs)
        if is_input and "dtype" not in described.layout(name):
            raise invalid(f"{name}.bin is bare bytes; say its dtype and shape in {DESCRIPTION}.", name)
    return inputs | arrays


def _goldens(golden: Any, hand: Hand) -> dict[str, Array]:
    """The arrays of a golden, as its own description says they are; bare bytes stay bare."""
    if not isinstance(golden, (str, Path)):
        return _at_hand(golden, "golden", hand).arrays
    path = Path(golden)
    contents = _contents(path)
    described = casefile.describe(contents.case, path) if contents.case else Description("")
    results, stored = _results(described, contents.arrays), sum(a.size for a in contents.arrays.values())
    return {n: casefile.seen(casefile.interpret(n, a, described.layout(n), path, stored)) for n, a in results.items()}


def _results(described: Description, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """The outputs among the arrays of a case; everything, where nobody knows the operator."""
    if not described.operator:
        return arrays
    outputs = {n for a in ops.find(described.operator).outputs for n in (a.name, a.snake)}
    parts = {name: name.partition(".") for name in arrays}
    return {n: arrays[n] for n, (stem, _, rest) in parts.items() if stem in outputs and (not rest or rest.isdigit())}


def _plain(name: str, contents: Contents, goldens: dict[str, Array] | None, hand: Hand, path: Path) -> Subject:
    if goldens is None:
        raise invalid(f"{path} does not say which operator it is of; name the operator, or give a golden.")
    targets: dict[str, Array | None] = {}
    for key, array in contents.arrays.items():
        bare = key in contents.raw or array.dtype.kind in "uiV"
        if key in contents.raw and hand.dtype is None:
            raise invalid(f"{key}.bin has {array.size} bytes of no known dtype; give its dtype and shape.", key)
        targets[key] = casefile.seen(casefile.interpret(key, array, hand.layout if bare else {}, path, array.size))
    paired = _paired(targets, goldens, path)
    if len(paired) < len(goldens):  # the golden says what must be there
        present = {_dotted(key) for key in targets}
        targets |= {key: None for key in goldens if _dotted(key) not in present}
    return Subject(name, targets, paired)


def _dotted(name: str) -> str:
    """The name that an element of a list has in files."""
    return name.replace("[", ".").removesuffix("]")


def _paired(targets: Mapping[str, Array | None], goldens: Mapping[str, Array], path: Path) -> dict[str, Array]:
    """The goldens by the names of the targets, seen as the targets are."""
    present = [n for n, t in targets.items() if t is not None]
    if len(present) == len(goldens) == 1:
        goldens = {present[0]: next(iter(goldens.values()))}
    found = {}
    for name in present:
        golden = goldens.get(name, goldens.get(_dotted(name)))
        if golden is not None:
            found[name] = _like(name, targets[name], golden, path)
    if not found:
        have, want = ", ".join(goldens) or "nothing", ", ".join(present)
        raise invalid(f"{path} has {want}, the golden has {have}; no name is in both.")
    return found


def _like(name: str, target: Array | None, golden: Array, path: Path) -> Array:
    assert target is not None
    dtype = containers.known_dtype(target, name)
    if golden.dtype.kind in "uV" and golden.dtype != target.dtype:
        golden = containers.as_dtype(golden, dtype, f"the golden of {name}")
        if golden.ndim == 1 and golden.size == target.size:
            golden = golden.reshape(target.shape)
    if golden.shape != target.shape:
        shapes = f"{list(target.shape)} but its golden {list(golden.shape)}"
        raise invalid(f"{path}: {name} has shape {shapes}; the two must be equal.", name)
    containers.known_dtype(golden, f"the golden of {name}")
    return golden


def flat(op: Op, arrays: Mapping[str, Any]) -> Iterator[tuple[str, Array | None]]:
    """The outputs by the names they have in reports: gradInput, dparamsOut[3]."""
    for arg in op.outputs:
        value = arrays[arg.name]
        if arg.kind == "tensor_list":
            yield from ((f"{arg.name}[{i}]", one) for i, one in enumerate(value or ()))
        else:
            yield arg.name, value
