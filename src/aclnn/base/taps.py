"""The taps of a convolution kernel: which positions each brings together, and its matrix of channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from aclnn.base.geometry import Array
from aclnn.base.status import invalid

MOST_TAPS = 2**22  # on one axis: each is planned by itself, so a view of 2³¹ of them would take minutes and gigabytes

Pair = tuple[slice, slice]
"""Output positions, and the input positions they meet, one for one."""


class Window(NamedTuple):
    """How the taps of a convolution move over its wide side, one number per axis."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding_before: tuple[int, ...]
    padding_after: tuple[int, ...]


def padding_ends(padding: Sequence[int], axes: int) -> tuple[tuple[int, int], ...]:
    """Front and back padding of each axis: one entry serves both ends, unless there are two entries per axis.

    >>> padding_ends([1, 2], 2), padding_ends([1, 2, 3, 4], 2)
    (((1, 1), (2, 2)), ((1, 2), (3, 4)))
    """
    if len(padding) == 2 * axes:
        return tuple(zip(padding[::2], padding[1::2], strict=True))
    return tuple((p, p) for p in padding)


def tap_ranges(
    outputs: Sequence[int],
    inputs: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool = False,
) -> tuple[tuple[Pair, ...], ...]:
    """For every axis, for every tap: the output positions that take part and the input positions they meet.

    Output u meets input u·stride − padding + tap·dilation; in a transposed convolution input u meets that output.
    Positions that meet nothing but padding are left out.

    >>> tap_ranges([3], [3], [2], [1], [1], [1])
    (((slice(1, 3, None), slice(0, 2, 1)), (slice(0, 3, None), slice(0, 3, 1))),)
    """
    if max(kernel, default=0) > MOST_TAPS:
        raise invalid(f"a kernel of {max(kernel)} taps on an axis is beyond the {MOST_TAPS} that can be planned.")
    fronts = (front for front, _ in padding_ends(padding, len(kernel)))
    found = []
    for out, in_, k, s, p, d in zip(outputs, inputs, kernel, stride, fronts, dilation, strict=True):
        if transposed:
            found.append(tuple(_tap_range(in_, out, s, q * d - p)[::-1] for q in range(k)))
        else:
            found.append(tuple(_tap_range(out, in_, s, q * d - p) for q in range(k)))
    return tuple(found)


def _tap_range(narrow: int, wide: int, stride: int, shift: int) -> Pair:
    """The u in 0..narrow−1 for which u·stride + shift is in 0..wide−1, and those partners."""
    first = max(0, -(shift // stride))
    end = min(narrow, (wide - 1 - shift) // stride + 1)
    if first >= end:
        return slice(0, 0), slice(0, 0)
    return slice(first, end), slice(first * stride + shift, (end - 1) * stride + shift + 1, stride)


def every_tap(axes: Sequence[tuple[Pair, ...]]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """Every tap of several axes of `tap_ranges`, with the indexes of the output and input positions that meet there.

    The indexes take two axes before those of the positions as they are.
    """
    whole = (slice(None), slice(None))
    for tap in np.ndindex(*map(len, axes)):
        pairs = [axis[q] for axis, q in zip(axes, tap, strict=True)]
        yield tap, (*whole, *(u for u, _ in pairs)), (*whole, *(i for _, i in pairs))


def taps_first(weight: Array, groups: int, transposed: bool) -> Array:
    """A weight as (*taps, groups, output channels, input channels)."""
    first, second, *taps = weight.shape
    by_tap = np.moveaxis(weight.reshape(groups, first // groups, second, *taps), (0, 1, 2), (-3, -2, -1))
    return by_tap.swapaxes(-2, -1) if transposed else by_tap


def taps_last(by_tap: Array, transposed: bool) -> Array:
    """The way back from `taps_first`."""
    by_group = np.moveaxis(by_tap.swapaxes(-2, -1) if transposed else by_tap, (-3, -2, -1), (0, 1, 2))
    groups, first, second, *taps = by_group.shape
    return by_group.reshape(groups * first, second, *taps)


def output_size(
    inputs: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
) -> tuple[int, ...]:
    """The spatial size of a convolution's output.

    >>> output_size([7], [3], [2], [1], [1], False, [0]), output_size([4], [3], [2], [1], [1], True, [1])
    ((4,), (8,))
    """
    padded = [front + back for front, back in padding_ends(padding, len(inputs))]
    axes = zip(inputs, kernel, stride, padded, dilation, output_padding, strict=True)
    if transposed:
        return tuple((n - 1) * s - p + d * (k - 1) + extra + 1 for n, k, s, p, d, extra in axes)
    return tuple((n + p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in axes)
