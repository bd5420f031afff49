"""What tests of several kernels need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import aclnn
from aclnn.kernels import conv_tbc_products, lstm_plan, onednn, precedence
from aclnn.kernels.program import Recent


def _chosen_here() -> str:
    installed = onednn.installed()
    return "onednn" if installed is not None and installed.has_avx512 else "tiles"


MULTIPLIERS = [
    name if name == _chosen_here() else pytest.param(name, marks=pytest.mark.long) for name in ("tiles", "onednn")
]


@pytest.fixture(scope="module", params=MULTIPLIERS)
def multiplied_by(request: pytest.FixtureRequest) -> Iterator[str]:
    """Who multiplies matrices for an LSTM, whatever this processor would choose."""
    if request.param == "onednn" and onednn.installed() is None:
        pytest.skip("needs oneDNN")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(precedence, "of_long_sums", lambda call: LEFT[request.param])
        aclnn.cache_clear()
        yield request.param
    aclnn.cache_clear()


LEFT = {"tiles": None, "onednn": "not asked"}


@pytest.fixture(params=["by tiles", "by oneDNN"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both ways to the products that go with oneDNN, whatever this processor would choose."""
    try:
        monkeypatch.setattr(onednn.library(), "has_avx512", request.param == "by tiles")
    except onednn.OneDnnError as reason:
        pytest.skip(str(reason))
    monkeypatch.setattr(precedence, "of_long_sums", lambda call: "not asked")
    aclnn.cache_clear()
    monkeypatch.setattr(conv_tbc_products, "recent", Recent(conv_tbc_products.recent._steps))
    monkeypatch.setattr(lstm_plan, "memories", Recent(lstm_plan.memories._steps))
    yield
    aclnn.cache_clear()
