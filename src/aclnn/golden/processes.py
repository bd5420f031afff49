"""Work shared among processes, each started afresh: a fork would inherit the locks of running threads."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

K = TypeVar("K")
R = TypeVar("R")


def in_processes(jobs: int, run: Callable[..., R], work: Mapping[K, tuple[Any, ...]]) -> Iterator[tuple[K, R]]:
    """What `run` makes of each set of arguments, by its key and as it is there."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(run, *arguments): key for key, arguments in work.items()}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
