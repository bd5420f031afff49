"""What importing costs, and that frameworks stay out until they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numba", "llvmlite", "jax", "typer", "rich", "jinja2", "matplotlib", "hypothesis")


def modules_after(program: str) -> set[str]:
    program += "; import sys; print(' '.join(sys.modules))"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stdout.split()}


@pytest.mark.parametrize(
    "program",
    ["import aclnn", "import aclnn; aclnn.compare"],
)
def test_importing_loads_nothing_heavy(program: str) -> None:
    loaded = modules_after(program)
    assert not loaded & set(HEAVY)
    assert "numpy" in loaded


def test_a_small_call_loads_what_runs_machine_code_but_no_compiler() -> None:
    """Once its kernel is in the cache: llvmlite takes a twentieth of a second, numba half of one."""
    program = "import aclnn, numpy as np; x = np.ones(4, np.float32); aclnn.elu_backward(x, 1.0, 1.0, 1.0, True, x)"
    modules_after(program)
    assert not modules_after(program) & (set(HEAVY) - {"llvmlite"})


def test_libdnnl_is_not_loaded_by_the_import() -> None:
    program = "import aclnn; print('dnnl' in open('/proc/self/maps').read())"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


def test_without_pytorch_its_door_says_what_to_install() -> None:
    program = "import sys; sys.modules['torch'] = None\nimport aclnn.torch"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.endswith(
        'aclnn.torch needs PyTorch, and a CPU build is enough: pip install "aclnn-cpu[torch]"\n'
    )
