"""Shared set-up: hypothesis profiles, and torch tests that say why they do not run."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Iterator

if "PYTEST_XDIST_WORKER" in os.environ:
    # One worker per core: the libraries we compare with stay on one thread, our own kernels keep their two.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", ACLNN_NUM_THREADS="2")

# Threads that wait soon sleep: on a machine that others use too, spinning ones keep their mates from running (tests of
# repeated parallel runs took 5 times as long).
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

# Tests read what is said in English, whoever runs them.
os.environ["ACLNN_LANG"] = "en"

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.vendor.pretty import for_type_by_name

from aclnn.base import language

settings.register_profile("default", deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
settings.load_profile("default")

# Without this the report of a failing case has the whole contract and the tables of a product in it: 34 KB.
for module, kind in (("aclnn.contract.model", "Op"), ("aclnn.base.device", "Device")):
    for_type_by_name(module, kind, lambda shown, printer, cycle: printer.text(repr(shown)))

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(autouse=True)
def _nobody_chose_a_language() -> Iterator[None]:
    """A command that a test runs without `main` leaves its --lang behind."""
    yield
    language.choose(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAS_TORCH:
        reason = pytest.mark.skip(reason="PyTorch, the independent reference, is not installed (make test TORCH=0)")
        for item in items:
            if "torch" in item.keywords:
                item.add_marker(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line per reason for which tests did not run, or fail as is known: a green run must not hide them."""
    for kind in ("skipped", "xfailed"):
        reasons = Counter(_reason(report) for report in terminalreporter.stats.get(kind, ()))
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{kind}: {count} {'test' if count == 1 else 'tests'}: {reason}")
    if "not torch" in config.getoption("-m") or not HAS_TORCH:
        terminalreporter.write_line("not run: the tests against PyTorch, the independent reference, and of its door")


def _reason(report: pytest.TestReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return str(said).removeprefix("Skipped: ").removeprefix("reason: ")
