"""What PyTorch must know of an operator without running it, read off its contract: its schema."""

from __future__ import annotations

from aclnn.contract.model import HIDDEN, Arg, Op

_TYPES = {
    "tensor": "Tensor",
    "tensor_list": "Tensor[]",
    "scalar": "Scalar",
    "bool": "bool",
    "double": "float",
    "int_array": "int[]",
    "bool_array": "bool[]",
}


def schema(op: Op) -> str:
    """The operator as `torch.library` declares it.

    >>> from aclnn import ops
    >>> schema(ops.find("elu"))
    'elu(Tensor input, Scalar alpha=1.0, Scalar scale=1.0, Scalar input_scale=1.0) -> Tensor'
    """
    parameters = []
    for arg in parameters_of(op):
        if arg.keyword_only and "*" not in parameters:
            parameters.append("*")
        parameters.append(_parameter(arg))
    results = [_TYPES[a.kind] + ("?" if _may_be_none(a) else "") for a in op.fresh]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{op.python}({', '.join(parameters)}) -> {returned}"


def parameters_of(op: Op) -> list[Arg]:
    """The arguments Python shows, in their order."""
    return [a for a in op.inputs if a.python != HIDDEN]


def _parameter(arg: Arg) -> str:
    """The dispatcher drops arguments that equal their default; autograd must count every tensor, so those have none."""
    kind = "Tensor(a!)" if arg.updated else _TYPES.get(arg.kind, "int")
    default = "" if arg.default is ... or arg.is_tensor else f"={arg.default}"
    return f"{kind}{'?' if _may_be_none(arg) else ''} {arg.snake}{default}"


def _may_be_none(arg: Arg) -> bool:
    """A list that is absent is returned as an empty one: PyTorch has no optional lists of results."""
    absent = arg.when is not None or (arg.optional and not arg.out) or arg.default is None
    return absent and not (arg.out and arg.kind == "tensor_list")
