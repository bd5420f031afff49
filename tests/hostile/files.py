"""Hostile files, thousands of them: valid files of every format damaged or made to lie, and bombs of every packing.

`python -m tests.hostile.files COUNT [record]` feeds them to `aclnn compare` and `aclnn run` in processes of their own
and says how many ended in a traceback, and what the most memory and the longest time were.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

RESULT = Path(__file__).parent / "results" / "files.csv"
MEGABYTES, SECONDS = 300, 10  # none may take more
_ROOM = 8 * 2**30  # address space of a process: what takes more fails here, not the machine
_EACH = 160  # files per process

ATTRIBUTES = {"alpha": 1.0, "scale": 1.0, "inputScale": 1.0, "isResult": False}
DESCRIBED = {"operator": "aclnnEluBackward", "product": "cpu", "attributes": ATTRIBUTES, "tensors": {}}
JSON_VALUES = (None, True, -1, 2**70, 1e308, float("nan"), "", "x\x1b[2J", [], [2**40], [[[]]], {}, {"a": {"b": []}})
LIES: tuple[Any, ...] = ([2**20, 2**20], [0], [-3, -4], [2**62], [10**9], [40, 60], [60, 40, 1], "60x40", [1] * 70)
TABLE = """op,case,dtype,sizes,views,data,inject
aclnnElu,a,float16,shape=3x4,,uniform:-2:2,self=nan:2
aclnnConvTbc,b,,,,,
"""
X = np.linspace(-2, 2, 2400, dtype=np.float32).reshape(60, 40)  # most of a file is data, so most damage is too


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return file.getvalue()


def npz(case: Any, method: int = zipfile.ZIP_STORED) -> bytes:
    arrays = {"gradOutput": X, "selfOrResult": X, "gradInput": X, "__case__": np.array(json.dumps(case))}
    return archive({f"{name}.npy": npy(array) for name, array in arrays.items()}, method)


def safetensors(case: Any, **changed: Any) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"__case__": json.dumps(case)}}
    for i, name in enumerate(("gradOutput", "selfOrResult", "gradInput")):
        header[name] = {"dtype": "F32", "shape": [60, 40], "data_offsets": [X.nbytes * i, X.nbytes * (i + 1)]}
    text = json.dumps(header | changed).encode()
    return struct.pack("<Q", len(text)) + text + X.tobytes() * 3


def pt(value: Any) -> bytes:
    import torch

    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


@cache
def valid(suffix: str) -> bytes:
    if suffix == ".pt":
        import torch

        return pt({"gradInput": torch.from_numpy(X), "b": torch.ones(1).expand(5)})
    made: dict[str, Callable[[], bytes]] = {
        ".npz": lambda: npz(DESCRIBED),
        ".npy": lambda: npy(X),
        ".bin": X.tobytes,
        ".safetensors": lambda: safetensors(DESCRIBED),
        ".json": lambda: json.dumps(DESCRIBED).encode(),
        ".csv": TABLE.encode,
    }
    return made[suffix]()


FORMATS = (".npz", ".npy", ".bin", ".safetensors", ".json", ".csv", ".pt")


def damaged(draw: random.Random, suffix: str) -> bytes:
    """Bits turned, bytes cut, repeated or put in; digits stay digits in tables, whose sizes are work and not a lie."""
    data = bytearray(valid(suffix))
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        at, what = draw.randrange(max(len(data), 1)), draw.random()
        if what < 0.6 and data:
            data[at] ^= 1 << draw.randrange(8)
        elif what < 0.7:
            del data[at:]
        elif what < 0.85:
            data[at:at] = draw.choice([b"[" * 3000, b"\x1b[2J", b'"', b"\0" * 9, b"\xff\xfe", b"\n=cmd,@x\n"])
        else:
            data[at:at] = data[: draw.randrange(200)] if suffix != ".csv" else b"#"
    return bytes(data)


def lying(draw: random.Random, suffix: str) -> bytes:
    """A header or a description that says something else."""
    value = draw.choice(JSON_VALUES + LIES)
    case = put(DESCRIBED, draw.choice(PLACES), value)
    if suffix == ".npz":
        return npz(case, draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    if suffix == ".safetensors":
        entry = {"dtype": "F32", "shape": [60, 40], "data_offsets": [0, X.nbytes]} | {
            draw.choice(["dtype", "shape", "data_offsets"]): value
        }
        return safetensors(case, **{draw.choice(["gradOutput", "__metadata__", "more"]): draw.choice([entry, value])})
    if suffix in (".npy", ".bin"):
        shape, dtype = draw.choice(LIES), draw.choice(["<f4", ">f8", "|O", "<U9", "|V2", "<c16", "|b1", "<f2"])
        head = repr({"descr": dtype, "fortran_order": draw.random() < 0.5, "shape": shape}).encode().ljust(117) + b"\n"
        return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + X.tobytes()
    if suffix == ".pt":
        import torch

        return pt(draw.choice([{"x": value}, value, torch.zeros(1).expand(2 ** draw.randint(1, 45)), [X]]))
    return json.dumps(case).encode()


PLACES: tuple[tuple[str, ...], ...] = (
    *((), ("operator",), ("product",), ("attributes",), ("attributes", "alpha"), ("tensors",)),
    *(("tensors", "gradOutput", name) for name in ("dtype", "shape", "strides", "offset", "format")),
)


def put(tree: Any, place: tuple[str, ...], value: Any) -> Any:
    return {**tree, place[0]: put(tree.get(place[0], {}), place[1:], value)} if place else value


@cache
def packed_bomb(megabytes: int, method: int, nested: bool) -> bytes:
    many = npy(np.zeros(megabytes * 2**20 // 6, np.float16))
    inner = dict.fromkeys(("gradOutput.npy", "selfOrResult.npy", "gradInput.npy"), many)
    packed = archive(inner | {"__case__.npy": npy(np.array(json.dumps(DESCRIBED)))}, method)
    return archive({"x.npy": packed}, method) if nested else packed


def bomb(draw: random.Random, suffix: str) -> bytes:
    """Much from little: every packing, archives in archives, views of one element, endless rows and nesting."""
    megabytes = draw.choice([1, 7, 9, 40])
    method = draw.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    if suffix in (".npz", ".pt"):
        return packed_bomb(megabytes, method, draw.random() < 0.3)
    if suffix == ".safetensors":
        view = {"shape": [2 ** draw.randint(10, 50)], "strides": [0], "offset": 0}
        return safetensors({**DESCRIBED, "tensors": dict.fromkeys(("gradOutput", "selfOrResult", "gradInput"), view)})
    if suffix == ".csv":
        return draw.choice([b"op\n" + b"aclnnElu\n" * 10**4, b"op\n" + b"\n" * 10**6, b'op\n"' + b"a" * 10**6])
    return draw.choice([b"[" * 10**6, b'{"operator":' * 10**5, b"[" + b"{}," * 10**6, b"9" * 10**6, bytes(10**6)])


class Case(NamedTuple):
    suffix: str
    kind: str
    data: bytes


def hostile(seed: int) -> Case:
    """One file of many; bombs are fewer, since making one takes longer than reading it."""
    draw = random.Random(seed)
    suffix = FORMATS[seed % len(FORMATS)]
    kind = draw.choices([damaged, lying, bomb], [70, 25, 5])[0]
    if kind is lying and suffix == ".csv":
        kind = damaged
    return Case(suffix, kind.__name__, kind(draw, suffix))


def arguments(case: Case, folder: Path) -> list[str]:
    """Writes the file, and says which command reads it."""
    path = folder / f"x{case.suffix}"
    if case.suffix == ".json":
        path = folder / "case.json"
        for name in ("gradOutput", "selfOrResult", "gradInput"):
            np.save(folder / f"{name}.npy", X)
    path.write_bytes(case.data)
    if case.suffix != ".json":
        np.save(folder / "golden.npy", X)
    if case.suffix == ".csv":
        return ["run", str(path), "--check", "-o", str(folder / "out")]
    plain = ["-gp", str(folder / "golden.npy"), "--dtype", "float32", "--shape", "60x40"]
    return ["compare", "-tp", str(path), *(plain if case.suffix in (".npy", ".bin", ".pt") else ())]


class Seen(NamedTuple):
    seed: int
    code: int
    megabytes: int  # the most the process had while it read
    seconds: float
    said: str


def read_one(seed: int) -> Seen:
    """What the command answers to one file."""
    from aclnn.cli import app, main  # what importing takes is not the file's fault

    assert app
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        case = hostile(seed)
        given = ["aclnn", *arguments(case, Path(folder))]
        Path("/proc/self/clear_refs").write_text("5")  # the peak is that of reading, not of making the file
        began, code = time.monotonic(), 0
        with patch.object(sys, "argv", given), redirect_stdout(said), redirect_stderr(said):
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
            except BaseException as error:
                code, _ = -1, said.write(f"Traceback: {error!r}")
        took = time.monotonic() - began
    return Seen(seed, code, peak(), took, "" if code in (0, 1, 2) else said.getvalue()[-300:])


def peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def worker(first: int, last: int, step: int) -> None:
    """Files one after the other, with little address space."""
    from aclnn.cases import batch

    batch.STEADY = 0.0  # a row runs once: how fast it is matters to nobody here
    resource.setrlimit(resource.RLIMIT_AS, (_ROOM, _ROOM))
    for seed in range(first, last, step):
        print(json.dumps(read_one(seed)), flush=True)


def measured(count: int, at_once: int = 2) -> Iterator[Seen]:
    """Each process reads one format, so that PyTorch is in the memory of those alone that need it."""
    step = len(FORMATS)
    starts = [block + i for block in range(0, count, _EACH * step) for i in range(step)]
    spans = [(start, min(start + _EACH * step, count), step) for start in starts]
    with ThreadPoolExecutor(at_once) as pool:
        for seen in pool.map(lambda span: list(in_a_process(*span)), spans):
            yield from seen


def in_a_process(start: int, end: int, step: int) -> Iterator[Seen]:
    command = [sys.executable, "-m", "tests.hostile.files", "--worker", str(start), str(end), str(step)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_EACH * SECONDS)
    seen = [Seen(*json.loads(line)) for line in ended.stdout.splitlines()]
    yield from seen
    if len(seen) != len(range(start, end, step)):
        yield Seen(start + step * len(seen), -1, 0, 0.0, ended.stderr[-500:] or "the process ended")


def faults(found: list[Seen]) -> list[Seen]:
    return [s for s in found if s.code not in (0, 1, 2) or s.megabytes > MEGABYTES or s.seconds > SECONDS]


def figures(found: list[Seen]) -> dict[str, object]:
    broken = sum(s.code not in (0, 1, 2) for s in found)
    return {
        "files": len(found),
        "compared": sum(s.code in (0, 1) for s in found),
        "refused": sum(s.code == 2 for s in found),
        "tracebacks": broken,
        "megabytes": max(s.megabytes for s in found),
        "seconds": round(max(s.seconds for s in found), 1),
    }


def main(given: list[str]) -> None:
    if given[0] == "--worker":
        worker(*map(int, given[1:]))
        return
    found = list(measured(int(given[0])))
    for fault in faults(found):
        print(fault, hostile(fault.seed)[:2])
    row = figures(found)
    print(row)
    if "record" in given:
        RESULT.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("ACLNN_NUM_THREADS", "1")
    main(sys.argv[1:])
