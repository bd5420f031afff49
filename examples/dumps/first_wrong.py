"""From a loss that went wrong to the kernel: a step is recorded, a fault is planted, and the wrong call is found.

    python examples/dumps/first_wrong.py step

The step is recorded by msprobe where it is installed (pip install mindstudio-probe), else by aclnn.torch.record. The
fault stands for what a wrong kernel would do: channel 3 of a weight gradient is two per cent too large.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from models import ResidualBlock, inputs

FAULTY = ("Functional.conv2d.1.backward.output.1.pt", "Module.second.Conv2d.parameters_grad.0.weight.npy")


def recorded(folder: Path) -> str:
    """Records one training step, and says who did it."""
    try:
        import msprobe  # noqa: F401
    except ImportError:
        return recorded_here(folder)
    make = Path(__file__).with_name("make.py")
    subprocess.run([sys.executable, str(make), "block", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return "msprobe"


def recorded_here(folder: Path) -> str:
    import aclnn.torch

    torch.manual_seed(0)
    model, x = ResidualBlock(), inputs("block")
    with aclnn.torch.record(model, folder):
        model(x).backward()
    return "aclnn.torch.record"


def plant(folder: Path) -> Path:
    """Makes channel 3 of one gradient two per cent too large."""
    path = next(p for name in FAULTY for p in folder.rglob(name))
    if path.suffix == ".npy":
        gradient = np.load(path)
        gradient[3] *= 1.02
        np.save(path, gradient)
    else:
        gradient = torch.load(path)
        gradient[3] *= 1.02
        torch.save(gradient, path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    print(f"recorded by {recorded(folder)}")
    print(f"planted a fault in {plant(folder).name}")


if __name__ == "__main__":
    main()
