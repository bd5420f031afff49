"""Convolutions that `make tune` measures; none of them is a named benchmark shape."""

from __future__ import annotations

from typing import Any


def _layer(x: tuple[int, ...], out: int, k: int | tuple[int, ...], **more: Any) -> dict[str, Any]:
    """A layer of `out` channels with kernels of k, padded so that the size stays (divided by the stride)."""
    kernel = (k,) * (len(x) - 2) if isinstance(k, int) else k
    groups = more.get("groups", 1)
    w = (x[1], out // groups, *kernel) if more.get("transposed") else (out, x[1] // groups, *kernel)
    dilation = more.get("dilation", 1)
    return {"x": x, "w": w, "padding": [dilation * (n - 1) // 2 for n in kernel], **more}


def _depthwise(x: tuple[int, ...], k: int, **more: Any) -> dict[str, Any]:
    return _layer(x, x[1], k, groups=x[1], **more)


SHAPES = (
    *(_layer(x, x[1], 3) for x in ((8, 32, 64, 64), (4, 96, 40, 40), (8, 160, 20, 20), (8, 384, 10, 10))),
    *(_layer(x, x[1], 3) for x in ((16, 256, 8, 8), (4, 320, 6, 6), (16, 48, 32, 32))),
    *(_layer((8, c, 64, 64), o, 1) for c, o in ((48, 192), (192, 48), (64, 64))),
    *(_layer((8, c, 28, 28), o, 1) for c, o in ((160, 480), (512, 128), (256, 256))),
    *(_layer((8, c, 7, 7), o, 1) for c, o in ((960, 160), (320, 1280), (1024, 1024))),
    *(_layer(x, 2 * x[1], 1, stride=2) for x in ((8, 128, 56, 56), (8, 512, 28, 28), (8, 96, 40, 40))),
    *(_layer(x, x[1], 3, stride=2) for x in ((8, 96, 56, 56), (8, 192, 28, 28), (4, 64, 112, 112), (8, 256, 14, 14))),
    *(_layer(x, x[1], 3, stride=2) for x in ((8, 160, 40, 40), (8, 48, 112, 112), (4, 320, 28, 28), (4, 384, 14, 14))),
    _layer((8, 3, 160, 160), 32, 3, stride=2),
    _layer((4, 3, 224, 224), 96, 7, stride=4),
    _layer((8, 3, 96, 96), 48, 7, stride=2),
    _layer((8, 3, 128, 128), 64, 3),
    _layer((32, 1, 28, 28), 32, 5),
    _layer((8, 64, 56, 56), 3, 3),
    *(_depthwise(x, 3) for x in ((8, 64, 56, 56), (8, 576, 14, 14), (4, 16, 112, 112), (2, 960, 7, 7))),
    *(_depthwise(x, 3, stride=2) for x in ((8, 96, 112, 112), (8, 288, 28, 28), (1, 240, 14, 14))),
    *(_depthwise(x, 5) for x in ((8, 120, 28, 28), (4, 480, 14, 14), (1, 672, 14, 14))),
    *(_depthwise(x, 7) for x in ((4, 96, 56, 56), (4, 384, 14, 14))),
    _depthwise((8, 72, 56, 56), 5, stride=2),
    *(_layer(x, x[1], 3, groups=g) for x, g in (((4, 256, 28, 28), 32), ((8, 64, 56, 56), 2), ((4, 96, 28, 28), 4))),
    *(_layer(x, x[1], 3, groups=g) for x, g in (((8, 64, 28, 28), 16), ((2, 256, 56, 56), 64), ((8, 512, 14, 14), 32))),
    *(_layer(x, x[1], 3, groups=g, stride=2) for x, g in (((4, 256, 56, 56), 32), ((8, 128, 28, 28), 4))),
    *(_layer(x, 64, 5) for x in ((8, 32, 28, 28), (4, 64, 56, 56))),
    *(_layer(x, x[1], 3, dilation=d) for x, d in (((4, 64, 56, 56), 2), ((4, 256, 28, 28), 4), ((8, 96, 28, 28), 3))),
    *(_layer(x, x[1] // 2, 4, stride=2, transposed=True) for x in ((4, 128, 32, 32), (8, 512, 8, 8), (16, 64, 16, 16))),
    *(_layer(x, x[1] // 2, 2, stride=2, transposed=True) for x in ((4, 256, 28, 28), (2, 64, 128, 128))),
    *(_layer(x, x[1], 3, transposed=True) for x in ((4, 64, 56, 56), (8, 256, 14, 14))),
    _layer((4, 64, 64, 64), 32, 3, stride=2, transposed=True, output_padding=1),
    _layer((16, 128, 1000), 128, 3),
    _layer((8, 512, 400), 512, 3),
    _layer((16, 32, 8000), 64, 7),
    _layer((8, 80, 3000), 384, 3),
    _layer((8, 96, 3000), 192, 5),
    _layer((8, 384, 3000), 384, 3, stride=2),
    _layer((16, 256, 1000), 512, 1),
    _layer((8, 64, 4000), 128, 3, dilation=16),
    _depthwise((8, 256, 1000), 31),
    _layer((8, 256, 500), 128, 4, stride=2, transposed=True),
    *(_layer(x, x[1], 3) for x in ((2, 32, 16, 28, 28), (2, 64, 8, 28, 28), (1, 24, 16, 64, 64))),
    _layer((2, 3, 16, 112, 112), 64, (3, 7, 7), stride=2),
    _layer((2, 128, 8, 14, 14), 256, 1),
    _layer((2, 32, 16, 56, 56), 64, 3, stride=2),
    _layer((2, 64, 8, 14, 14), 32, 2, stride=2, transposed=True),
)
