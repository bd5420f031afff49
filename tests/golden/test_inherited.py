"""Calls that read what an earlier one got wrong say so: in a whole dump, and after its parts were put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn.golden.join_reports import join
from aclnn.golden.read import containers
from aclnn.golden.result import DumpComparison
from aclnn.golden.steps import SharedWork
from tests.golden.dumping import DumpWriter, save

FIRST, READER = "Functional.conv2d.0.forward", "Functional.conv2d.3.forward"


def chain(folder: Path, seed: int = 0) -> Path:
    """Four convolutions; the last reads what the first one got wrong, the others read tensors of the same shape."""
    w = DumpWriter(folder, seed=seed)
    weight = w.draw(3, 3, 3, 3)
    w.conv("Functional.conv2d.0", w.draw(2, 3, 8, 8), weight, None, padding=1)
    path = folder / "dump_tensor_data" / f"{FIRST}.output.0.pt"
    wrong = np.array(containers.read(path).arrays[path.stem])
    wrong[:, 1] *= np.float32(1.05)
    save(path, wrong)
    for n in (1, 2):
        w.conv(f"Functional.conv2d.{n}", w.draw(2, 3, 8, 8), weight, None, padding=1)
    w.conv("Functional.conv2d.3", wrong, weight, None, padding=1)
    return w.finish()


def inheritors(found: DumpComparison) -> dict[str, str]:
    return {call.name: call.first.inherits for call in found.calls if call.first.inherits}


@pytest.mark.parametrize("parts", [2, 5, 8])
def test_parts_that_are_put_together_say_the_same_as_the_whole(parts: int, tmp_path: Path) -> None:
    dump = chain(tmp_path / "d")
    whole = aclnn.compare(dump)
    assert isinstance(whole, DumpComparison)
    # the gradient of the last convolution reads its input too
    assert inheritors(whole) == dict.fromkeys((READER, "Functional.conv2d.3.backward"), FIRST)
    written = []
    for n in range(1, parts + 1):
        part = aclnn.compare(dump, work=SharedWork(shard=(n, parts)))
        written += part.save(tmp_path / f"{n}.json")
    joined = join(written[::-1])
    assert inheritors(joined) == inheritors(whole)
    assert str(joined) == str(whole)


def test_what_another_rank_got_wrong_is_not_inherited(tmp_path: Path) -> None:
    for rank in (0, 1):
        chain(tmp_path / "d" / f"rank{rank}")  # both hold the same
    for found in (aclnn.compare(tmp_path / "d"), _joined(tmp_path)):
        assert isinstance(found, DumpComparison)
        origins = inheritors(found)
        assert len(origins) == 4
        assert all(name.partition("/")[0] == origin.partition("/")[0] for name, origin in origins.items())


def _joined(folder: Path) -> DumpComparison:
    files = []
    for n in (1, 2, 3):
        files += aclnn.compare(folder / "d", work=SharedWork(shard=(n, 3))).save(folder / f"{n}.json")
    return join(files)
