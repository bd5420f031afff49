"""What calls are refused with, by whoever finds it: a code and a sentence that begins with the operator."""

from __future__ import annotations

from aclnn.base.status import AclnnError, Status
from aclnn.contract.model import Op


def parameter(op: Op, text: str, argument: str) -> AclnnError:
    return AclnnError(Status.ACLNN_ERR_PARAM_INVALID, f"{op.name}: {text}.", argument=argument)


def no_memory(op: Op, name: str) -> AclnnError:
    text = f"{op.name}: {name} has a null address; a tensor that is not empty must have memory."
    return AclnnError(Status.ACLNN_ERR_PARAM_NULLPTR, text, argument=name)


def inner(op: Op, text: str) -> AclnnError:
    return AclnnError(Status.ACLNN_ERR_INNER, f"{op.name}: {text}.")
