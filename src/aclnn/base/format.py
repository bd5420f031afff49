"""Tensor formats: what the axes of a tensor are called."""

from __future__ import annotations

from enum import IntEnum


class Format(IntEnum):
    """aclFormat numbers."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33
    NC = 35
    NCL = 47
    FRACTAL_NZ_C0_16 = 50
    FRACTAL_NZ_C0_32 = 51
    FRACTAL_NZ_C0_2 = 52
    FRACTAL_NZ_C0_4 = 53
    FRACTAL_NZ_C0_8 = 54

    @property
    def acl_name(self) -> str:
        """The constant of the C interface."""
        return "ACL_FRACTAL_Z_3D" if self is Format.FRACTAL_Z_3D else f"ACL_FORMAT_{self.name}"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def by_number(number: int) -> Format | None:
    try:
        return Format(number)
    except ValueError:
        return None


def by_name(name: str) -> Format | None:
    return Format.__members__.get(name.upper())
