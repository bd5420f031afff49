"""Trains the classifier of train.py on our operators in several processes, on one machine or on many.

    torchrun --nproc-per-node 2 examples/torch/ddp.py --plot loss.svg

Every process takes its part of each batch; torch.distributed (gloo) averages the gradients. Process 0 also trains
alone on the joined batches, and compares: the same gradients, the same loss curve. On several machines: start the same
line on each with --nnodes, --node-rank and --rdzv-endpoint. Options: --sharded (FSDP: every process holds only its part
of the parameters), --steps, --batch (of all together), --plot FILE.
"""

from __future__ import annotations

import argparse
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.progress import Progress
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from train import BATCH, STEPS, Classifier, Run, batches, plot

import aclnn.torch


def make(seed: int = 0) -> Classifier:
    torch.manual_seed(seed)
    model = Classifier()
    aclnn.torch.swap(model)
    return model


def shared(model: Classifier, sharded: bool) -> nn.Module:
    if not sharded:
        return DistributedDataParallel(model)
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (*model.children(), model):
        fully_shard(part, mesh=mesh)
    return model


def part_of(batch: Tensor, rank: int, size: int) -> Tensor:
    return batch.chunk(size)[rank]


def mean_over_processes(value: float) -> float:
    total = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def gradients(run: Run) -> list[Tensor]:
    """Whole, also those of which every process holds a part: all processes must ask."""
    found = run.gradients().values()
    return [g.full_tensor() if hasattr(g, "full_tensor") else g for g in found]


def largest_difference(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """In units of the largest element of each."""
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, theirs, strict=True))


def train(steps: int, batch: int, sharded: bool = False) -> tuple[Run, Run | None, float]:
    """The run of this process, in process 0 also the run alone, and how far their first gradients are apart."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if batch % size:
        raise SystemExit(f"--batch {batch} cannot be shared by {size} processes")
    together = Run(f"{size} processes", shared(make(), sharded), torch.float32)
    alone = Run("1 process", make(), torch.float32) if rank == 0 else None
    difference = 0.0
    progress: Any = Progress() if rank == 0 else nullcontext()
    with progress:
        bar = progress.add_task("training", total=steps) if rank == 0 else None
        for number, (pictures, kinds) in enumerate(batches(steps, batch)):
            together.step(part_of(pictures, rank, size), part_of(kinds, rank, size))
            together.losses[-1] = mean_over_processes(together.losses[-1])
            first = gradients(together) if number == 0 else None
            if alone is not None:
                alone.step(pictures, kinds)
                difference = largest_difference(first, gradients(alone)) if first is not None else difference
                progress.update(bar, advance=1, description=f"step {number + 1}, loss {together.losses[-1]:.3f}")
    return together, alone, difference


def report(given: argparse.Namespace) -> None:
    together, alone, difference = train(given.steps, given.batch, given.sharded)
    if alone is None:
        return
    curve = max(abs(a - b) for a, b in zip(together.losses, alone.losses, strict=True))
    print(f"{together.name}: loss {together.losses[0]:.4f} → {together.losses[-1]:.4f}")
    print(f"against 1 process with the joined batch: gradients at most {difference:.1e}, losses {curve:.1e} apart")
    if given.plot:
        plot((together, alone), given.plot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--sharded", action="store_true", help="share out the parameters as well (FSDP)")
    parser.add_argument("--plot", type=Path, help="a file for the loss curves (needs matplotlib)")
    given = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start it with torchrun: torchrun --nproc-per-node 2 examples/torch/ddp.py")
    dist.init_process_group("gloo")
    report(given)
    # The models are gone by now, and the barrier lets the last messages through: a model or message that outlives its
    # group can hang in PyTorch (2.13: the group waits for a gloo thread, which waits for the interpreter lock).
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
