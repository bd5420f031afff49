"""The judgement by its short name, which the tests of kernels use."""

from aclnn.golden.judge.sound import Judged, judge

__all__ = ["Judged", "judge"]
