"""Thirty-six ways to get a training step wrong: each is named at the right call and place, and nothing else is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import aclnn
from aclnn.base import exit_codes
from aclnn.golden.result import DumpComparison
from tests.golden.dumping import Array, DumpWriter, lstm, lstm_parameters
from tests.golden.dumping import save as save_tensor

CONV, GROUPED, TALL = "Functional.conv2d.0", "Functional.conv2d.1", "Functional.conv2d.2"
UP, TBC, ELU, SELU, CELU = (
    *("Functional.conv_transpose1d.0", "Torch.conv_tbc.0"),
    *("Functional.elu.0", "Functional.selu.0", "Functional.celu.0"),
)
LSTM, CELL = "Module.net.rnn.LSTM", "Module.net.cell.LSTM"


def write(folder: Path) -> Path:
    """A step with one call of every kind."""
    w = DumpWriter(folder)
    d = w.draw
    w.conv(CONV, d(4, 6, 16, 16), d(8, 6, 3, 3), d(8), stride=1, padding=1)
    w.conv(GROUPED, d(4, 8, 12, 12), d(8, 2, 3, 3), None, groups=4, dilation=2)
    w.conv(TALL, d(4, 6, 16, 16), d(8, 6, 3, 3), d(8), padding=1)
    w.conv(UP, d(4, 6, 10), d(6, 4, 4), d(4), transposed=True, stride=2, padding=1)
    w.conv_tbc(TBC, d(12, 3, 5), d(3, 5, 4), d(4), 1)
    w.elu(ELU, d(6, 40), [1.3, False], 1.3)
    w.elu(SELU, d(6, 40), [False], 1.6732632423543772, 1.0507009873554805)
    w.elu(CELU, d(6, 40), [0.6, False], 0.6, 1.0, 1 / 0.6)
    lstm(w, LSTM, d(5, 9, 6), lstm_parameters(w, 6, 8, 2, 2), 2, 2, batch_first=True)
    state = (d(1, 4, 8), d(1, 4, 8))
    lstm(w, CELL, d(7, 4, 6), lstm_parameters(w, 6, 8), hx=state)
    return w.finish()


class Fault(NamedTuple):
    """What is changed, in which file; the call and the output that are wrong; what the report says of it."""

    file: str
    change: Callable[[Array, Callable[[str], Array]], Array]
    output: str
    says: str  # of place or reason


Read = Callable[[str], Array]


def at(*index: object) -> Callable[[Callable[[Array], Array]], Callable[[Array, Read], Array]]:
    def changing(change: Callable[[Array], Array]) -> Callable[[Array, Read], Array]:
        def apply(a: Array, read: Read) -> Array:
            a = a.copy()
            a[index] = change(a[index])  # type: ignore[index]
            return a

        return apply

    return changing


ALL = slice(None)
zero: Callable[[Array], Array] = np.zeros_like


def scaled(a: Array) -> Array:
    return np.asarray(a * np.float32(1.01))


def nan(a: Array) -> Array:
    return np.asarray(a + np.float32(np.nan))


def narrow_sums(a: Array, read: Read) -> Array:
    """gradBias with every addition in float16."""
    total = np.zeros(a.shape, np.float16)
    grad = read(f"{CONV}.backward.input.0")
    for n, i, j in np.ndindex(grad.shape[0], *grad.shape[2:]):
        total = (total + grad[n, :, i, j].astype(np.float16)).astype(np.float16)
    return total.astype(np.float32)


def swapped_gates(a: Array, read: Read) -> Array:
    i, f, g, o = np.split(a, 4)
    return np.concatenate([i, g, f, o])


def half_of_the_batch(a: Array, read: Read) -> Array:
    grad = read(f"{CONV}.backward.input.0")
    return grad[:2].sum(axis=(0, 2, 3))


def without_alpha(a: Array, read: Read) -> Array:
    g, x = read(f"{ELU}.backward.input.0"), read(f"{ELU}.forward.input.0")
    return np.where(x > 0, g, g * np.exp(x)).astype(np.float32)


def as_result(a: Array, read: Read) -> Array:
    g, x = read(f"{ELU}.backward.input.0"), read(f"{ELU}.forward.input.0")
    return np.where(x > 0, g, g * (x + np.float32(1.3))).astype(np.float32)


def rounded_to_float16(a: Array, read: Read) -> Array:
    x, w = (read(f"{CONV}.forward.input.{i}").astype(np.float16).astype(np.float32) for i in (0, 1))
    with aclnn.product("cpu"):
        found = aclnn.convolution(x, w, read(f"{CONV}.forward.input.2"), 1, 1, 1, False, 0, 1, cube_math_type=0)
    return np.asarray(found)


def padding_ignored(a: Array, read: Read) -> Array:
    g, x, w = (read(f"{CONV}.{n}") for n in ("backward.input.0", "forward.input.0", "forward.input.1"))
    wide = np.pad(x, ((0, 0), (0, 0), (0, 2), (0, 2)))  # as if the picture began at its corner
    with aclnn.product("cpu"):
        return aclnn.convolution_backward(
            g, wide, w, [8], 1, 0, 1, False, 0, 1, (False, True, False), cube_math_type=0
        )[1]


FAULTS: dict[str, Fault] = {
    "a channel scaled": Fault(f"{CONV}.forward.output.0", at(ALL, 3)(scaled), "output", "only in channel 3"),
    "a lost tile": Fault(
        f"{CONV}.backward.output.0", at(ALL, ALL, slice(4, 8), slice(8, 12))(zero), "gradInput", "in rows 4 to 7"
    ),
    "a row too few": Fault(f"{CONV}.forward.output.0", at(ALL, ALL, 15)(zero), "output", "only in row 15"),
    "the last picture": Fault(f"{CONV}.backward.output.0", at(3)(zero), "gradInput", "only in batch 3"),
    "one element": Fault(f"{CONV}.backward.output.1", at(2, 1, 0, 2)(lambda a: a + 5), "gradWeight", "1 element"),
    "a tap": Fault(f"{CONV}.backward.output.1", at(ALL, ALL, 2, 0)(zero), "gradWeight", "only in kernel row 2"),
    "a missing bias sum": Fault(f"{CONV}.backward.output.2", half_of_the_batch, "gradBias", "beyond rounding"),
    "fp16 accumulation": Fault(f"{CONV}.backward.output.2", narrow_sums, "gradBias", "beyond rounding"),
    "a bias never written": Fault(f"{CONV}.backward.output.2", lambda a, r: a * 0, "gradBias", "never written"),
    "NaN": Fault(f"{CONV}.forward.output.0", at(1, 2, 3, 4)(nan), "output", "1 element"),
    "all NaN": Fault(f"{GROUPED}.backward.output.1", at(ALL)(nan), "gradWeight", "every element of the target is NaN"),
    "Inf": Fault(f"{GROUPED}.forward.output.0", at(0, 0, 0, 0)(lambda a: a + np.inf), "output", "1 element"),
    "stale memory": Fault(
        f"{TALL}.backward.output.0",
        lambda a, r: np.concatenate([a[:2], r(f"{CONV}.backward.output.0")[2:]]),
        "gradInput",
        "only in batches 2 to 3",
    ),
    "the wrong layer's gradient": Fault(
        f"{TALL}.backward.output.1", lambda a, r: r(f"{CONV}.backward.output.1"), "gradWeight", "beyond rounding"
    ),
    "a kernel turned round": Fault(
        f"{CONV}.backward.output.1",
        lambda a, r: a[..., ::-1, ::-1].copy(),
        "gradWeight",
        "taken in the wrong direction",
    ),
    "padding ignored": Fault(f"{CONV}.backward.output.1", padding_ignored, "gradWeight", "padding was ignored"),
    "inputs rounded to float16": Fault(
        f"{CONV}.forward.output.0", rounded_to_float16, "output", "the inputs were rounded to float16"
    ),
    "a group": Fault(f"{GROUPED}.forward.output.0", at(ALL, slice(2, 4))(zero), "output", "only in group 1"),
    "groups of the weight": Fault(
        f"{GROUPED}.backward.output.1", at(slice(6, 8))(lambda a: -a), "gradWeight", "only in group 3"
    ),
    "a column of a transposed one": Fault(
        f"{UP}.forward.output.0", at(ALL, ALL, 0)(zero), "output", "only in column 0"
    ),
    "the weight of a transposed one": Fault(
        f"{UP}.backward.output.1", at(4)(scaled), "gradWeight", "only in input channel 4"
    ),
    "a step of conv_tbc": Fault(f"{TBC}.forward.output.0", at(11)(zero), "output", "only in the last time step"),
    "a tap of conv_tbc": Fault(f"{TBC}.backward.output.1", at(1)(scaled), "gradWeight", "only in kernel tap 1"),
    "alpha ignored": Fault(f"{ELU}.backward.output.0", without_alpha, "gradInput", "alpha was ignored"),
    "input for result": Fault(
        f"{ELU}.backward.output.0", as_result, "gradInput", "selfOrResult was taken for the forward's output"
    ),
    "scale ignored": Fault(
        f"{SELU}.backward.output.0",
        lambda a, r: (a / np.float32(1.0507009873554805)).astype(np.float32),
        "gradInput",
        "scale was ignored",
    ),
    "a wrong celu": Fault(f"{CELU}.forward.output.0", at(5)(scaled), "out", "only at 5 of axis 0"),
    "an ELU that stops early": Fault(
        f"{ELU}.forward.output.0", at(ALL, slice(32, 40))(zero), "out", "only at 32 to 39 of axis 1"
    ),
    "swapped gates": Fault(
        f"{CELL}.parameters_grad.0.weight_ih_l0", swapped_gates, "dparamsOut[0]", "only in gates f and g"
    ),
    "a missing bias of an LSTM": Fault(
        f"{LSTM}.parameters_grad.0.bias_hh_l1_reverse", lambda a, r: a * 0, "dparamsOut[15]", "beyond rounding"
    ),
    "the last step of an LSTM": Fault(
        f"{LSTM}.backward.0.output.0", at(ALL, 8)(zero), "dxOut", "only in the last time step"
    ),
    "a sequence of an LSTM": Fault(f"{LSTM}.backward.0.output.0", at(2)(scaled), "dxOut", "only in batch 2"),
    "one gate's rows": Fault(
        f"{LSTM}.parameters_grad.0.weight_hh_l0", at(slice(24, 32))(scaled), "dparamsOut[1]", "only in gate o"
    ),
    "dh for dc": Fault(
        f"{CELL}.backward.0.output.2", lambda a, r: r(f"{CELL}.backward.0.output.1"), "dcPrevOut", "beyond rounding"
    ),
    "a forward step of an LSTM": Fault(f"{CELL}.forward.0.output.0", at(3)(scaled), "output", "only in time step 3"),
    "a last state": Fault(f"{CELL}.forward.0.output.1.1", at(0, 2)(scaled), "cy", "only in batch 2"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("dump"))


def test_there_are_thirty() -> None:
    assert len(FAULTS) >= 30


def test_the_dump_itself_is_right(whole: Path) -> None:
    found = aclnn.compare(whole)
    assert isinstance(found, DumpComparison)
    assert (found.exit_code(), found.wrong, found.unjudged) == (exit_codes.RIGHT, [], [])
    assert len(found.calls) == 2 * 8 + 2 * 3
    found.assert_right()


@pytest.mark.parametrize(
    "name", [name if i % 4 == 0 else pytest.param(name, marks=pytest.mark.long) for i, name in enumerate(FAULTS)]
)
def test_a_fault_is_named_where_it_is(name: str, whole: Path, tmp_path: Path) -> None:
    fault = FAULTS[name]
    shutil.copytree(whole, tmp_path / "d", dirs_exist_ok=True)
    tensors = tmp_path / "d" / "dump_tensor_data"

    def read(stem: str) -> Array:
        from aclnn.golden.read import containers

        return np.array(containers.read(tensors / f"{stem}.pt").arrays[stem])

    changed = fault.change(read(fault.file), read)
    assert changed.shape == read(fault.file).shape
    save_tensor(tensors / f"{fault.file}.pt", np.asarray(changed, np.float32))
    found = aclnn.compare(tmp_path / "d")
    assert isinstance(found, DumpComparison)
    (wrong,) = found.wrong
    assert fault.file.startswith(wrong.name)
    assert [r.output for r in wrong.reports if r.sound is False] == [fault.output]
    assert fault.says in str(found), str(found)
    assert found.exit_code() == exit_codes.MISMATCH
    assert "/home/me/train.py" in str(found) or "parameters_grad" in wrong.name
    with pytest.raises(AssertionError, match="first wrong"):
        found.assert_right()
