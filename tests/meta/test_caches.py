"""functools.cache has no lock: what it holds may be made twice when two threads come first. Each use is a decision."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "aclnn"

PURE = "pure and immutable: made twice it is equal, and nobody asks which of the two it is"
ALLOWED = {
    "base/foreign_arrays.py:_of_torch": PURE,
    "base/chinese.py:_patterns": "read from a file of ours",
    "base/chinese.py:sentences": "read from a file of ours",
    "capi/build.py:_compiler_version": PURE,
    "capi/signature.py:_dtype": "equal dtypes; an unknown number is refused by its name, not by its identity",
    "runtime/call_key.py:torch_kinds": PURE,
    "runtime/numpy_threads.py:_switch": PURE,
    "runtime/familiar_calls.py:_guards": "a type of PyTorch: the same object both times",
    "runtime/settings.py:_environment_engine": PURE,
    "runtime/settings.py:_environment_product": "products are found in a table: the same object both times",
    "runtime/settings.py:_environment_threads": PURE,
}
OWNED_ELSEWHERE = ("kernels/", "golden/", "gen/", "cli/")
ON_OBJECTS = {  # kept: an attribute of an object that threads share
    "base/dtype.py": PURE,
    "contract/model.py": PURE,
    "contract/rule.py": PURE,
    "runtime/plan.py": PURE,
}


def uses(name: str) -> set[str]:
    """Every function with this decorator, as file:function."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                decorators = {ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in node.decorator_list}
                if name in decorators:
                    found.add(f"{path.relative_to(SOURCES).as_posix()}:{node.name}")
    return {use for use in found if not use.startswith(OWNED_ELSEWHERE)}


def test_every_cache_is_one_that_may_be_made_twice() -> None:
    assert uses("cache") | uses("lru_cache") == set(ALLOWED)


def test_every_property_that_is_kept_may_be_made_twice() -> None:
    assert {use.partition(":")[0] for use in uses("kept")} == set(ON_OBJECTS)


def test_no_property_has_a_lock_that_a_fork_could_leave_held() -> None:
    assert not [p for p in SOURCES.rglob("*.py") if "import cached_property" in p.read_text(encoding="utf-8")]
