"""The LSTM and its cell forwards on compiled loops and matmuls: right at any size, stride, dtype and value."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aclnn
from aclnn.base.device import CPU
from aclnn.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from aclnn.contract.cases import Case, fill, views
from aclnn.golden.judge.sound import judge
from aclnn.kernels.lstm import fast, program
from aclnn.kernels.lstm_cell import fast as lstm_cell_fast
from aclnn.kernels.matmul import matrix
from aclnn.ops.lstm_cell import thnn_fused_lstm_cell_case
from aclnn.ops.lstm_forward import lstm_case
from tests.harness import assert_sound, bits, call, moved, turned
from tests.kernels.cases import assert_green
from tests.ops.test_lstm_forward import arrays, cases, taking_part

pytest.importorskip("numba")

DTYPES = [FLOAT32, FLOAT16, BFLOAT16]
SEQUENCES = st.sampled_from(DTYPES).flatmap(lambda d: cases(dtype=d, device=CPU))
CELLS = st.builds(
    thnn_fused_lstm_cell_case,
    st.integers(1, 5),
    st.integers(1, 70),
    st.booleans(),
    st.sampled_from(DTYPES),
    st.just(CPU),
)


def spread(case: Case) -> Case:
    """The case with a gap after every row of its tensors; features stay side by side."""
    changed = {}
    for arg in case.op.tensors:
        specs = case.call.specs(arg.name)
        if not specs or specs[0].rank < 2 or arg.name == "params":
            continue
        wide = []
        for spec in specs:
            strides, step = [1], spec.shape[-1] + 3
            for size in reversed(spec.shape[:-1]):
                strides.append(step)
                step *= max(size, 1)
            wide.append(spec._replace(strides=tuple(reversed(strides)), offset=2, storage=None))
        changed[arg.name] = tuple(wide) if arg.kind == "tensor_list" else wide[0]
    return case.but("spread", **changed)


@settings(max_examples=100)
@given(SEQUENCES.filter(lambda c: not c.values["input"].is_empty), st.booleans())
def test_any_sequences_are_sound(case: Case, with_gaps: bool) -> None:
    assert_sound(spread(case) if with_gaps else case, "fast")


@pytest.mark.parametrize(
    "names", [("output",), fast.LISTS, ("input", "hx", "output", "hy", "cy", *fast.LISTS)], ids=len
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_features_that_do_not_lie_side_by_side(names: tuple[str, ...], dtype: DType) -> None:
    case = lstm_case(3, 4, 5, 6, layers=2, bidirectional=True, lengths=(3, 3, 2, 0), dtype=dtype, device=CPU)
    assert_sound(turned(case, *names), "fast")


def test_lists_that_take_no_part_may_lie_anyhow() -> None:
    assert_sound(turned(lstm_case(3, 4, 5, 6, train=False), "output"), "fast")


def test_more_sequences_than_65536() -> None:
    assert_sound(lstm_case(2, 70_001, 3, 2), "fast")


@settings(max_examples=100)
@given(CELLS, st.booleans())
def test_any_cells_are_sound(case: Case, with_gaps: bool) -> None:
    assert_sound(spread(case) if with_gaps else case, "fast")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_ones_are_sound(dtype: DType) -> None:
    assert_sound(lstm_case(9, 5, 70, 65, layers=2, bidirectional=True, dtype=dtype, device=CPU), "fast")


@pytest.mark.parametrize("train", [True, False])
def test_what_takes_no_part_is_not_read_and_comes_out_as_zero(train: bool) -> None:
    case = lstm_case(4, 3, 2, 3, layers=2, bidirectional=True, lengths=(4, 2, 0), train=train)
    given_ = arrays(case)
    given_ = {**given_, "input": given_["input"].astype(np.float32)}
    for name in ("params", "hx"):
        given_[name] = [a.astype(np.float32) for a in given_[name]]
    y, hy, _, *lists = aclnn.lstm(**given_, engine="fast")
    away = ~taking_part(given_)
    for array in (y, *(a for one in lists if one is not None for a in one)):
        assert np.isfinite(array).all()
        assert (array[away] == 0).all()
    assert (hy[:, 2] == given_["hx"][0][:, 2]).all()


def test_nan_reaches_all_later_steps_of_its_sequence_and_nothing_else() -> None:
    case = lstm_case(4, 3, 2, 3)
    filled = fill(case)
    filled["input"].view[1, 1, 0] = np.nan
    call(case, filled, engine="fast")
    out = filled["output"].view
    assert np.isnan(out[1:, 1]).all()
    assert np.isfinite(out[0]).all()
    assert np.isfinite(out[:, [0, 2]]).all()


@pytest.mark.parametrize("values", [[np.inf, -np.inf], [200.0, -200.0], [1e-30, -1e-30], [np.nan, 1.0]])
def test_gates_of_any_size(values: list[float]) -> None:
    case = thnn_fused_lstm_cell_case(2, 3, has_bias=False)
    filled, expected = fill(case), fill(case)
    for one in (filled, expected):
        one["inputGates"].view[...] = np.resize(values, (2, 12))
    call(case, filled, engine="fast")
    call(case, expected, engine="reference")
    for name in ("hyOut", "cyOut", "storageOut"):
        np.testing.assert_allclose(filled[name].view, expected[name].view, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cells_have_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, dtype: DType) -> None:
    monkeypatch.setattr(lstm_cell_fast, "PER_THREAD", 1)
    case, found = thnn_fused_lstm_cell_case(7, 130, dtype=dtype, device=CPU), set()
    for threads in (1, 2, 3, 7):
        aclnn.cache_clear()
        with aclnn.threads(threads):
            filled = fill(case, 3)
            call(case, filled, engine="fast")
            found.add(tuple(bits(case, filled)))
    aclnn.cache_clear()
    assert len(found) == 1


@pytest.mark.parametrize("ahead", [1, 12, 256])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_same_bits_on_any_number_of_threads(ahead: int, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps' inputs are multiplied at a time, too, unless it is one: then that is part of its own sum."""
    monkeypatch.setattr(matrix, "PER_THREAD", 1)
    monkeypatch.setattr(program, "NEAR", ())
    case, found = lstm_case(7, 6, 8, 140, layers=2, bidirectional=True, dtype=dtype, device=CPU), set()
    for threads, rows in [(1, 1 if ahead == 1 else 256), (1, ahead), (2, ahead), (3, ahead), (7, ahead)]:
        monkeypatch.setattr(program, "ROWS_AHEAD", rows)
        aclnn.cache_clear()
        with aclnn.threads(threads):
            filled = fill(case, 3)
            call(case, filled, engine="fast")
            found.add(tuple(bits(case, filled)))
    aclnn.cache_clear()
    assert len(found) == 1


@pytest.mark.parametrize(
    ("batch", "hidden", "ahead"),
    [
        (1, 32, 50),
        (3, 256, 50),
        (4, 256, 1),
        (64, 256, 1),
        (7, 512, 36),
        (8, 512, 1),
        (64, 512, 1),
        (64, 1024, 4),
        (129, 1024, 1),
        (300, 1024, 1),
    ],
)
def test_how_many_steps_are_multiplied_ahead(batch: int, hidden: int, ahead: int) -> None:
    """None where the weights stay near and serve several sequences, nor where there are enough of these in a step."""
    assert program.Sizes(50, batch, hidden, hidden, 1, 1).ahead() == ahead
    assert program.Sizes(50, batch, 1, hidden, 2, 1).ahead() == ahead, "the widest layer counts"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lengths", [None, (9, 9, 7, 4, 4, 1), (9, 2, 2, 2, 2, 2)])
def test_an_input_that_is_part_of_its_steps_own_sum(
    lengths: tuple[int, ...] | None, dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For many sequences and for one, which is all that is left of them in some steps."""
    monkeypatch.setattr(program, "ROWS_AHEAD", 1)
    aclnn.cache_clear()
    for hidden, features in ((40, 270), (140, 3)):
        case = lstm_case(9, 6, features, hidden, 2, True, lengths=lengths, dtype=dtype, device=CPU)
        assert_sound(case, "fast")
    aclnn.cache_clear()


def test_a_repeatable_plan_takes_other_lengths_and_addresses() -> None:
    case = lstm_case(4, 3, 2, 3, lengths=(4, 2, 1))
    given_ = arrays(case)
    for name in ("params", "hx"):
        given_[name] = [a.astype(np.float32) for a in given_[name]]
    given_["input"] = np.nan_to_num(given_["input"]).astype(np.float32)
    plan = aclnn.lstm.plan(**given_, engine="fast", repeatable=True)
    workspace = np.empty(plan.workspace_size, np.uint8)
    plan.run(workspace)
    other = np.array([3, 3, 1, 0])
    plan.set_address("batch_sizes", other)
    y, *_ = plan.run(workspace)
    expected, *_ = aclnn.lstm(**{**given_, "batch_sizes": other}, engine="fast")
    assert (y == expected).all()


def test_who_serves_what() -> None:
    def weights(hidden: int) -> list[np.ndarray]:
        return [np.zeros((4 * hidden, 8), np.float32), np.zeros((4 * hidden, hidden), np.float32)]

    attributes = {"has_bias": False, "num_layers": 1, "bidirectional": False, "batch_first": False}
    x = np.zeros((16, 4, 8), np.float32)
    assert aclnn.lstm.plan(x, weights(64), **attributes).kernel == "tiles"
    assert aclnn.lstm.plan(x, weights(2), **attributes).kernel == "tiles"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("hidden", [64, 72, 128])
@pytest.mark.parametrize("shift", [0, 1])
def test_lists_past_the_caches_have_the_same_bits(
    hidden: int, dtype: DType, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units that fill lines or do not, and memory that begins a line or does not."""
    found = []
    for far in (program.FAR, 0):
        monkeypatch.setattr(program, "FAR", far)
        aclnn.cache_clear()
        case = lstm_case(3, 20, 24, hidden, dtype=dtype, device=CPU)
        filled = fill(case, 3)
        for name in fast.LISTS:
            filled[name] = [moved(one.view, shift) for one in filled[name]]
        call(case, filled, engine="fast")
        found.append(bits(case, filled))
    assert found[0] == found[1]
    aclnn.cache_clear()


@pytest.mark.parametrize("value", [1.1, 0.7, 1 / 3, 0.1])
@pytest.mark.parametrize("hidden", [100, 500, 1024])
def test_equal_terms_of_input_and_state_are_within_the_bound(hidden: int, value: float) -> None:
    case = lstm_case(1, 140, hidden, hidden, device=CPU)
    filled = fill(case, 3)
    for tensor in (filled["input"], *filled["hx"]):
        tensor.view[...] = value
    for weight in filled["params"]:
        weight.view[...] = np.float32(0.3 / hidden)
    call(case, filled, engine="fast")
    for output in judge(case.op, case.call, views(filled, case.op)):
        assert output.sound, f"{output.name} is {output.worst:.3g} times the allowed error off"


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels of x86-64")
@pytest.mark.parametrize("level", ["sse41", "avx2"])
def test_every_instruction_set(level: str) -> None:
    assert_green(__file__, level)
