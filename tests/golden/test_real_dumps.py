"""Dumps made by msprobe itself, in a virtual environment of its own: what it really writes is what is read.

ACLNN_MSPROBE names the Python of an environment with mindstudio-probe and torch; without it one is made, if a package
index is within reach.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn
from aclnn.base import exit_codes
from aclnn.golden.result import DumpComparison
from tests.golden.dumping import save

ROOT = Path(__file__).resolve().parents[2]
MAKE = ROOT / "examples" / "dumps" / "make.py"
NEEDED = (
    *("einops", "matplotlib", "numpy", "openpyxl", "packaging", "pandas"),
    *("psutil", "pytz", "pyyaml", "tensorboard", "tqdm", "wheel"),
)
NARROW_SUMS = {  # the calls and outputs of each model whose sums PyTorch stores in 16 bits
    "block": {
        ("Functional.conv2d.2.backward", "gradWeight"),
        *((f"Functional.conv2d.{n}.backward", f"grad{what}") for n in (0, 1) for what in ("Input", "Weight")),
    },
    "speech": {("Functional.conv1d.0.backward", f"grad{what}") for what in ("Input", "Weight", "Bias")},
    "decoder": {
        ("Functional.conv_transpose1d.0.forward", "output"),
        ("Functional.conv_transpose1d.0.backward", "gradWeight"),
    },
}
pytestmark = [pytest.mark.long, pytest.mark.torch]


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with the tool."""
    given = os.environ.get("ACLNN_MSPROBE")
    if given:
        return given
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    for words in (["torch==2.13.0"], ["--no-deps", "mindstudio-probe"], NEEDED):
        if subprocess.run([python, "-m", "pip", "install", "--quiet", *words], capture_output=True).returncode:
            pytest.skip("mindstudio-probe cannot be installed from here")
    return python


def made(probe: str, folder: Path, model: str, *words: str) -> DumpComparison:
    ended = subprocess.run([probe, MAKE, model, folder, *words], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found = aclnn.compare(folder)
    assert isinstance(found, DumpComparison)
    return found


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("model", ["block", "speech", "decoder"])
def test_every_call_of_a_float32_step_is_judged_and_right(probe: str, model: str, level: str, tmp_path: Path) -> None:
    found = made(probe, tmp_path / "d", model, "--level", level)
    assert (found.exit_code(), found.unjudged) == (exit_codes.RIGHT, []), str(found)
    assert len(found.calls) >= 4
    assert any("models.py:" in call.first.line for call in found.calls)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "autocast"])
@pytest.mark.parametrize("model", ["block", "speech", "decoder"])
def test_narrow_types(probe: str, model: str, dtype: str, tmp_path: Path) -> None:
    """All is right but what PyTorch's convolutions add up in 16 bits, where the processor has no better way for them.

    That is wrong, and proved to the bit to be so; whoever allows it finds everything right.
    """
    found = made(probe, tmp_path / "d", model, "--dtype", dtype)
    assert found.unjudged == [], str(found)
    wrong = {(call.name, r.output) for call in found.wrong for r in call.reports if r.sound is False}
    assert wrong == (NARROW_SUMS[model] if _adds_up_in_16_bits(probe, dtype) else set()), str(found)
    kind = "float16" if dtype == "float16" else "bfloat16"
    hints = {hint.key for call in found.wrong for r in call.reports for hint in r.hints}
    assert hints == ({f"{kind}-partial-sums"} if wrong else set())
    assert all(r.hints for call in found.wrong for r in call.reports if r.sound is False), str(found)
    assert found.exit_code() == (exit_codes.MISMATCH if wrong else exit_codes.RIGHT)
    allowed = aclnn.compare(tmp_path / "d", narrow_sums=True)
    assert (allowed.exit_code(), allowed.sound) == (exit_codes.RIGHT, True), str(allowed)
    assert aclnn.compare(tmp_path / "d", standard="mixed").exit_code() == exit_codes.RIGHT


def _adds_up_in_16_bits(probe: str, dtype: str) -> bool:
    """Whether this PyTorch has no convolution of its library for the type on this processor."""
    name = "fp16" if dtype == "float16" else "bf16"
    code = f"import torch; print(torch.ops.mkldnn._is_mkldnn_{name}_supported())"
    ended = subprocess.run([probe, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip() == "False"


@pytest.mark.parametrize("words", [("--checkpoint",), ("--inplace",), ("--inplace", "--level", "L0"), ("--steps", "2")])
def test_recomputation_in_place_and_steps(probe: str, words: tuple[str, ...], tmp_path: Path) -> None:
    found = made(probe, tmp_path / "d", "block", *words)
    assert found.exit_code() == exit_codes.RIGHT, str(found)
    assert {r.why.en for r in found.unjudged if r.why} <= {
        "it was computed in place, and then the dump has the gradient of a copy of its result"
    }


@pytest.mark.parametrize("model", ["block", "speech"])
def test_names_of_a_distributed_model(probe: str, model: str, tmp_path: Path) -> None:
    found = made(probe, tmp_path / "d", model, "--ddp", "--level", "L0")
    assert (found.exit_code(), found.unjudged) == (exit_codes.RIGHT, []), str(found)
    assert all(call.name.startswith("Module.module.") for call in found.calls)


def test_statistics_alone(probe: str, tmp_path: Path) -> None:
    assert made(probe, tmp_path / "d", "block", "--task", "statistics").exit_code() == exit_codes.BAD_INPUT


def test_the_same_as_npy(probe: str, tmp_path: Path) -> None:
    """msprobe writes .pt; a dump whose files were turned into .npy is the same dump."""
    from aclnn.golden.read import containers

    made(probe, tmp_path / "d", "speech", "--dtype", "bfloat16")
    (folder,) = (p.parent for p in (tmp_path / "d").rglob("dump.json"))
    for path in (folder / "dump_tensor_data").glob("*.pt"):
        save(path.with_suffix(".npy"), containers.read(path).arrays[path.stem])
        path.unlink()
    text = (folder / "dump.json").read_text().replace('.pt"', '.npy"')
    (folder / "dump.json").write_text(text)
    found = aclnn.compare(tmp_path / "d", standard="mixed")
    assert found.exit_code() == exit_codes.RIGHT, str(found)
    assert not [r for r in found.reports if r.status == "skipped"]


def test_the_example_finds_its_fault(probe: str, tmp_path: Path) -> None:
    script = ROOT / "examples" / "dumps" / "first_wrong.py"
    for python, who in ((probe, "msprobe"), (sys.executable, "aclnn.torch.record")):
        folder = tmp_path / who
        ended = subprocess.run([python, script, folder], capture_output=True, text=True)
        assert f"recorded by {who}" in ended.stdout, ended.stderr
        found = aclnn.compare(folder)
        assert isinstance(found, DumpComparison)
        (wrong,) = found.wrong
        assert "second" in wrong.name or wrong.name == "Functional.conv2d.1.backward"
        assert "only in output channel 3" in str(found)
        shutil.rmtree(folder)
