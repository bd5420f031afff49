"""Who is asked first, tiles of our own or oneDNN: a few lines, and what was measured beside them.

Zen 3, AVX2, float32; on AVX-512 nothing was measured yet, and oneDNN is asked first.
"""

from __future__ import annotations

import math

from aclnn.contract.call import Call
from aclnn.kernels import onednn


def of_convolution(call: Call) -> str | None:
    """Why tiles of a convolution wait for oneDNN, if they do: without AVX-512 where there is one tap.

    Tiles against oneDNN (two threads, one process, 32 shapes), both gradients and forwards: with several taps mostly
    0.44 to 1.01 and 0.69 to 1.13, with one tap 1.14 to 1.43 and 1.11 to 1.48. For pictures of three channels (1.33 and
    1.97) and in 256 passes (3.06) oneDNN is ahead too, but its long sums over several taps break the stated bound
    there, up to 42 times; with one tap they hold it.
    """
    with_one_tap = math.prod(call["weight"].shape[2:]) == 1 and onednn.installed() is not None
    return of_long_sums(call) or ("oneDNN is ahead of it where there is one tap" if with_one_tap else None)


def of_long_sums(call: Call) -> str | None:
    """The same for conv_tbc and LSTM: without AVX-512 oneDNN's matrix products break the stated bound on long sums, and
    allocate. LSTM on tiles against oneDNN (one thread, ten sizes): backwards 0.67 to 1.23, forwards 0.72 to 1.10."""
    installed = onednn.installed()
    return "oneDNN is asked first on AVX-512" if installed is not None and installed.has_avx512 else None
