"""Makes a dump of one training step with msprobe (pip install mindstudio-probe), on any CPU.

    python examples/dumps/make.py speech dump --level mix --dtype bfloat16 --format npy

Then: aclnn compare -tp dump
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from models import MODELS, inputs

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "autocast": torch.float32}


def main() -> None:
    asked = parsed()
    from msprobe.pytorch import PrecisionDebugger

    torch.manual_seed(asked.seed)
    asked.folder.mkdir(parents=True, exist_ok=True)
    tensor = {"scope": [], "list": [], "data_mode": ["all"], "file_format": asked.format}
    settings = {"dump_path": str(asked.folder), "rank": [], "step": [], "level": asked.level, "task": asked.task}
    config = asked.folder / "config.json"
    config.write_text(json.dumps({**settings, "enable_dataloader": False, asked.task: tensor}))
    dtype = DTYPES[asked.dtype]
    kind = MODELS[asked.model]
    model = (kind(inplace=True) if asked.inplace else kind()).to(dtype)
    model = distributed(model) if asked.ddp else model
    x = inputs(asked.model, dtype)
    debugger = PrecisionDebugger(config_path=str(config))
    for _ in range(asked.steps):
        debugger.start(model=model)
        step(model, x, asked)
        debugger.stop()
        debugger.step()


def distributed(model: torch.nn.Module) -> torch.nn.Module:
    """The model as one process of a group trains it: its modules get a prefix, and its hooks add up gradients."""
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    return torch.nn.parallel.DistributedDataParallel(model)


def step(model: torch.nn.Module, x: torch.Tensor, asked: argparse.Namespace) -> None:
    with torch.autocast("cpu", torch.bfloat16, enabled=asked.dtype == "autocast"):
        if asked.checkpoint:
            from torch.utils.checkpoint import checkpoint

            loss = checkpoint(model, x, use_reentrant=False)
        else:
            loss = model(x)
    loss.backward()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--level", default="mix", choices=("L0", "L1", "mix"))
    parser.add_argument("--task", default="tensor", choices=("tensor", "statistics"))
    parser.add_argument("--format", default="pt", choices=("pt", "npy"))
    parser.add_argument("--dtype", default="float32", choices=DTYPES)
    parser.add_argument("--checkpoint", action="store_true", help="recompute activations in the backward pass")
    parser.add_argument("--inplace", action="store_true", help="an ELU that overwrites its input")
    parser.add_argument("--ddp", action="store_true", help="wrap the model in DistributedDataParallel")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
