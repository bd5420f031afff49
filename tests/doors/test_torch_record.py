"""Recording a step of a model and judging it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aclnn
from aclnn.golden.result import DumpComparison

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402

import aclnn.torch  # noqa: E402


class Model(nn.Module):
    """Every kind of module that is recorded, one of them twice, one in place, states in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Conv1d(3, 4, 3, padding=1, stride=2)
        self.again = nn.Conv1d(4, 4, 3, padding=2, dilation=2)
        self.act, self.in_place = nn.ELU(0.7), nn.ELU(inplace=True)
        self.rnn = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.cell = nn.LSTMCell(10, 6)
        self.up = nn.ConvTranspose1d(6, 2, 3, stride=2, output_padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.again(self.act(self.again(self.in_place(self.front(x) * 1.0))))
        y, (h, _) = self.rnn(y.transpose(1, 2))
        state = self.cell(y[:, 0])
        state = self.cell(y[:, 1], state)
        return self.up(state[0][..., None]).square().mean() + h.square().mean()


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("step")
    torch.manual_seed(0)
    model = Model()
    x = torch.randn(4, 3, 16, requires_grad=True)
    model(x).backward()
    plain = [x.grad.clone(), *(p.grad.clone() for p in model.parameters())]
    x.grad = None
    model.zero_grad()
    with aclnn.torch.record(model, folder):
        model(x).backward()
    assert all(torch.equal(a, b) for a, b in zip(plain, [x.grad, *(p.grad for p in model.parameters())], strict=True))
    assert not model.front._forward_hooks
    return folder


def test_a_recorded_step_is_right(step: Path) -> None:
    found = aclnn.compare(step)
    assert isinstance(found, DumpComparison)
    found.assert_right()
    kinds = {(c.first.kind, c.is_judged) for c in found.calls}
    for kind in ("Conv1d", "ELU", "LSTM", "LSTMCell", "ConvTranspose1d"):
        for direction in ("forward", "backward"):
            assert (f"{kind} {direction}", True) in kinds
    assert ("Conv1d parameters_grad", True) in kinds
    assert all("ELU" in r.case for r in found.unjudged), str(found)
    assert "test_torch_record.py" in found.calls[0].first.line


def test_a_fault_in_a_recorded_step_is_found(step: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(step, tmp_path / "s")
    path = tmp_path / "s" / "dump_tensor_data" / "Module.again.Conv1d.parameters_grad.0.weight.npy"
    off = np.load(path)
    off[2] *= 1.1
    np.save(path, off)
    found = aclnn.compare(tmp_path / "s")
    assert isinstance(found, DumpComparison)
    assert [c.name for c in found.wrong] == ["Module.again.Conv1d.parameters_grad.0"]
    with pytest.raises(AssertionError, match=r"first wrong: Module\.again"):
        found.assert_right()


def test_attributes_of_a_model() -> None:
    said = aclnn.torch.attributes(Model().eval())
    assert said["front"]["stride"] == [2]
    assert said["rnn"] == {"batch_first": True, "dropout": 0.0}
    assert said["act"] == {"alpha": 0.7, "inplace": False}


def test_what_is_no_model_or_no_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for wrong in (None, 3, [nn.ELU()]):
        with pytest.raises(aclnn.AclnnError, match=r"it must be a torch\.nn\.Module"):
            aclnn.torch.swap(wrong)
        with (
            pytest.raises(aclnn.AclnnError, match=r"it must be a torch\.nn\.Module"),
            aclnn.torch.record(wrong, tmp_path / "new"),
        ):
            pass
    assert not (tmp_path / "new").exists()
    with (
        pytest.raises(aclnn.AclnnError, match="nothing can be recorded in"),
        aclnn.torch.record(nn.ELU(), tmp_path / "taken"),
    ):
        pass
