"""`python -m tests.hostile.cold DOOR THREADS MIDDLE`: a process whose first calls come from several threads at once.

Prints a digest of every result, the same for every thread or it fails; MIDDLE forks or spawns while they are at work.
"""

from __future__ import annotations

import faulthandler
import hashlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import aclnn
from aclnn import ops
from aclnn.contract.cases import fill

PATIENCE = 100  # seconds that a child may take
Digests = dict[str, str]


def flat(result: Any) -> Iterator[Any]:
    for one in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(one, (list, tuple)):
            yield from flat(one)
        elif one is not None:
            yield one


def digest(result: Any) -> str:
    arrays = (one.detach().numpy() if hasattr(one, "detach") else getattr(one, "view", one) for one in flat(result))
    parts = (np.ascontiguousarray(a() if callable(a) else a).tobytes() for a in arrays)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def through_python() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every operator on its first case, as auto and fast have it, and a convolution for which auto takes oneDNN."""
    rng = np.random.default_rng(5)
    x, w = (rng.normal(0, 1, s).astype(np.float32) for s in ((4, 16, 28, 28), (16, 16, 3, 3)))
    yield "large convolution", lambda: aclnn.convolution(x, w, None, 1, 1, 1, False, 0, 1, 0)
    for op in ops.all_ops():
        for engine in ("auto", "fast"):
            yield f"{op.name} {engine}", lambda op=op, engine=engine: _by_case(op, engine)


def _by_case(op: Any, engine: str) -> Any:
    case = next(ops.cases(op))
    filled = fill(case, seed=7)
    given = {a.name: filled[a.name] for a in op.inputs}
    result = getattr(aclnn, op.python)._call(given, None, case.device, engine)
    return [one.view if isinstance(one, aclnn.Tensor) else one for one in flat(result)]


def through_torch() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Functions and modules, forwards and backwards."""
    import torch

    import aclnn.torch as door

    torch.manual_seed(3)
    modules = {
        "ELU": (door.ELU(1.5), torch.randn(8, 4096)),
        "Conv1d": (door.Conv1d(8, 8, 3), torch.randn(4, 8, 400)),
        "Conv2d": (door.Conv2d(16, 16, 3, padding=1), torch.randn(4, 16, 28, 28)),
        "ConvTranspose2d": (door.ConvTranspose2d(16, 8, 3), torch.randn(2, 16, 14, 14)),
        "ConvTBC": (door.ConvTBC(16, 16, 3, 1), torch.randn(50, 4, 16)),
        "LSTM": (door.LSTM(16, 32), torch.randn(12, 4, 16)),
        "LSTMCell": (door.LSTMCell(16, 32), torch.randn(4, 16)),
    }
    image, kernel = torch.randn(2, 8, 20, 20), torch.randn(8, 8, 3, 3)
    yield "elu", lambda: door.elu(image)
    yield "convolution", lambda: door.convolution(image, kernel, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    for name, (module, given) in modules.items():
        yield name, lambda module=module, given=given: _step(torch, module, given)


def _step(torch: Any, module: Any, given: Any) -> Any:
    """The outputs of a module, and the gradients of a sum over them."""
    x = given.clone().requires_grad_()
    outputs = list(flat(module(x)))
    wanted = [x, *module.parameters()]
    total = sum((one * torch.linspace(-1, 1, one.numel()).reshape(one.shape)).sum() for one in outputs)
    return [*outputs, *torch.autograd.grad(total, wanted)]


DOORS = {"python": through_python, "torch": through_torch}


def digests(door: str, threads: int, middle: str) -> list[Digests]:
    """What every thread found; they begin together."""
    tasks = list(DOORS[door]())
    start, found = threading.Barrier(threads), [Digests() for _ in range(threads)]

    def work(mine: Digests) -> None:
        start.wait()
        for name, task in tasks:
            try:
                mine[name] = digest(task())
            except Exception as error:
                mine[name] = f"{type(error).__name__}: {error}"

    workers = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for worker in workers:
        worker.start()
    if middle != "none":
        {"fork": _fork, "spawn": _spawn}[middle](door)
    for worker in workers:
        worker.join()
    return found


def _fork(door: str) -> None:
    """Children compute too, on kernels that need no threads; to other bits."""
    for _ in range(2):
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)  # where it hangs, if it does
            said = digests(door, 1, "none")[0].values()
            wrong = [text for text in said if ": " in text and "engine 'fast' cannot serve" not in text]
            print(*wrong, sep="\n", end="", file=sys.stderr, flush=True)
            os._exit(1 if wrong else 0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            sys.exit(f"a forked child ended with {code}")


def _spawn(door: str) -> None:
    """A spawned child computes the same bits."""
    child = multiprocessing.get_context("spawn").Process(target=main, args=(door, 1, "none"))
    child.start()
    child.join(PATIENCE)
    if child.exitcode != 0:
        sys.exit(f"a spawned child ended with {child.exitcode}")


def main(door: str, threads: int, middle: str) -> None:
    found = digests(door, threads, middle)
    for name, first in found[0].items():
        others = {mine[name] for mine in found}
        print(name, first if others == {first} else f"differs between threads: {sorted(others)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
