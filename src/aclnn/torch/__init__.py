"""The door for PyTorch: operators with gradients, drop-in modules, and `swap`, which puts them into a model.

Importing it declares every operator as `torch.ops.aclnn.<name>`.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    _NEEDED = 'aclnn.torch needs PyTorch, and a CPU build is enough: pip install "aclnn-cpu[torch]"'
    raise ModuleNotFoundError(_NEEDED, name="torch") from None

from aclnn.torch.functions import conv_tbc, convolution, elu, lstm, thnn_fused_lstm_cell
from aclnn.torch.gradients import register_all as _register_all
from aclnn.torch.library import declare_all as _declare_all
from aclnn.torch.modules import (
    ELU,
    LSTM,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTBC,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    LSTMCell,
)
from aclnn.torch.node import build
from aclnn.torch.node import use_what_is_built as _use_what_is_built
from aclnn.torch.record import attributes, record
from aclnn.torch.swap import Report, swap, swap_back

_declare_all()
_register_all()
_use_what_is_built()

__all__ = [
    "ELU",
    "LSTM",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTBC",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LSTMCell",
    "Report",
    "attributes",
    "build",
    "conv_tbc",
    "convolution",
    "elu",
    "lstm",
    "record",
    "swap",
    "swap_back",
    "thnn_fused_lstm_cell",
]
