"""Trains the same Conv–ELU–LSTM classifier twice, on PyTorch's operators and on ours, and compares them step by step.

    python examples/torch/train.py

The data are made here: pictures of a note whose pitch rises, falls, does both, or stays. A third run in float64 says
how far float32 rounding alone may drive two curves apart. Options: --steps, --batch, --plot FILE, --engine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from rich.progress import Progress
from torch import Tensor, nn

import aclnn
import aclnn.torch

STEPS, BATCH = 64, 64  # two epochs of 2048 pictures
TIMES, PITCHES, CLASSES = 32, 32, 4


class Classifier(nn.Module):
    """Two convolutions that halve the picture, an LSTM over its columns, and a decision from the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ELU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ELU()
        )
        self.memory = nn.LSTM(64 * PITCHES // 2, 96, batch_first=True)
        self.decision = nn.Linear(96, CLASSES)

    def forward(self, pictures: Tensor) -> Tensor:
        columns = self.features(pictures).permute(0, 2, 1, 3).flatten(2)
        states, _ = self.memory(columns)
        return self.decision(states[:, -1])


def batches(count: int, size: int, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Pictures (size, 1, TIMES, PITCHES) and what each shows."""
    made = torch.Generator().manual_seed(seed)
    at, pitch = torch.linspace(0, 1, TIMES)[:, None], torch.arange(PITCHES)
    curves = torch.stack([at, 1 - at, 1 - (2 * at - 1).abs(), torch.full_like(at, 0.5)])
    for _ in range(count):
        kind = torch.randint(CLASSES, (size,), generator=made)
        low, span = (torch.rand((2, size, 1, 1), generator=made) * PITCHES / 4).unbind(0)
        centre = low + curves[kind] * (PITCHES / 2 + span)
        note = torch.exp(-(((pitch - centre) / 1.5) ** 2))
        noise = torch.randn((size, TIMES, PITCHES), generator=made)
        yield (note + 0.5 * noise)[:, None], kind


class Run:
    """One model in training."""

    def __init__(self, name: str, model: nn.Module, dtype: torch.dtype):
        self.name, self.model, self.dtype = name, model.to(dtype), dtype
        # at five times the rate training is chaotic: PyTorch's float32 and float64 are apart by 0.4 after 200 steps
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        self.losses: list[float] = []
        self.seconds = 0.0

    def step(self, pictures: Tensor, kinds: Tensor) -> None:
        start = time.perf_counter()
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(pictures.to(self.dtype)), kinds)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        self.seconds += time.perf_counter() - start

    def gradients(self) -> dict[str, Tensor]:
        return {name: p.grad.double() for name, p in self.model.named_parameters()}


def start(seed: int = 0) -> tuple[Run, Run, Run]:
    """PyTorch's operators, ours, and PyTorch's in float64, with the same parameters."""
    torch.manual_seed(seed)
    models = [Classifier() for _ in range(3)]
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())
    print(aclnn.torch.swap(models[1]))
    names = (("torch", torch.float32), ("aclnn", torch.float32), ("torch float64", torch.float64))
    theirs, ours, exact = (Run(name, model, dtype) for (name, dtype), model in zip(names, models, strict=True))
    return theirs, ours, exact


def show_gradients(theirs: Run, ours: Run, exact: Run) -> None:
    print("\nfirst gradients, largest error in units of the largest element (against float64)")
    print(f"{'parameter':24}{'torch':>12}{'aclnn':>12}")
    for name, truth in exact.gradients().items():
        errors = ((run.gradients()[name] - truth).abs().max() / truth.abs().max() for run in (theirs, ours))
        print(f"{name:24}" + "".join(f"{e:12.1e}" for e in errors))


def apart(run: Run, exact: Run) -> float:
    """How far a loss curve is from that of float64, at most."""
    return max(abs(a - b) for a, b in zip(run.losses, exact.losses, strict=True))


def plot(runs: tuple[Run, ...], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel="loss")
    for run, style in zip(runs, ("-", "--", ":"), strict=False):
        axes.plot(run.losses, style, label=run.name)
    axes.legend()
    figure.savefig(file)
    print(f"loss curves: {file}")


def train(steps: int, batch: int) -> tuple[Run, Run, Run]:
    runs = start()
    with Progress() as progress:
        bar = progress.add_task("training", total=steps)
        for number, (pictures, kinds) in enumerate(batches(steps, batch)):
            for run in runs:
                run.step(pictures, kinds)
            if number == 0:
                show_gradients(*runs)
            progress.update(bar, advance=1, description=f"loss {runs[1].losses[-1]:.3f}")
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--engine", default="auto", help="auto, fast, numpy or reference")
    parser.add_argument("--plot", type=Path, help="a file for the loss curves (needs matplotlib)")
    given = parser.parse_args()
    with aclnn.engine(given.engine):
        theirs, ours, exact = train(given.steps, given.batch)
    for run in (theirs, ours):
        print(
            f"{run.name:6} loss {run.losses[0]:.4f} → {run.losses[-1]:.4f}, at most {apart(run, exact):.1e} from "
            f"float64's, {run.seconds / given.steps * 1e3:.1f} ms a step"
        )
    if given.plot:
        plot((theirs, ours, exact), given.plot)


if __name__ == "__main__":
    main()
