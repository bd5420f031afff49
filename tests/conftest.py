"""Shared set-up: hypothesis profiles, and torch tests that say why they do not run."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
settings.load_profile("default")

HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAS_TORCH:
        reason = pytest.mark.skip(reason="PyTorch, the independent reference, is not installed (make test TORCH=0)")
        for item in items:
            if "torch" in item.keywords:
                item.add_marker(reason)
