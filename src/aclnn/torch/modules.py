"""Drop-in modules: PyTorch's own, with their constructor arguments and state_dict names, computed by our operators.

Each is a subclass without state of its own, so that `swap` may exchange the class of a module and nothing else.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from aclnn.base.status import invalid
from aclnn.torch import functions
from aclnn.torch.direct import call

States = tuple[torch.Tensor, torch.Tensor]


class ELU(nn.ELU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if self.inplace:
            return functions.elu(input, self.alpha, inplace=True)
        return call("elu", (input,), (self.alpha, 1.0, 1.0))  # as functions.elu has it, a call less


_NOTHING = {axes: (0,) * axes for axes in (1, 2, 3)}


class _Convolution:
    """What convolutions of one, two and three dimensions share: PyTorch's class calls this and nothing else."""

    def _conv_forward(self: Any, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        axes = len(self.kernel_size)
        is_batched = input.dim() == axes + 2
        padded, padding = input if is_batched else input.unsqueeze(0), self.padding
        if self.padding_mode != "zeros" or type(padding) is not tuple:
            padded, padding = self._padded(padded)
        attributes = self.stride, padding, self.dilation, False, _NOTHING[axes], self.groups, 0
        output = call("convolution", (padded, weight, bias), attributes)
        return output if is_batched else output.squeeze(0)

    def _padded(self: Any, input: torch.Tensor) -> tuple[torch.Tensor, tuple[int, ...]]:
        """The input, and the padding that is left for the operator: zeros, the same on both ends of an axis."""
        ends = self._reversed_padding_repeated_twice  # of the last axis first
        front, back = tuple(ends[-2::-2]), tuple(ends[::-2])
        if self.padding_mode == "zeros" and front == back:
            return input, front
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        return functional.pad(input, ends, mode=mode), _NOTHING[len(front)]


class Conv1d(_Convolution, nn.Conv1d):
    pass


class Conv2d(_Convolution, nn.Conv2d):
    pass


class Conv3d(_Convolution, nn.Conv3d):
    pass


class _TransposedConvolution:
    def forward(self: Any, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        axes = len(self.kernel_size)
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, axes, self.dilation
        )
        is_batched = input.dim() == axes + 2
        batch = input if is_batched else input.unsqueeze(0)
        output = functions.convolution(
            batch, self.weight, self.bias, self.stride, self.padding, self.dilation, True, extra, self.groups
        )
        return output if is_batched else output.squeeze(0)


class ConvTranspose1d(_TransposedConvolution, nn.ConvTranspose1d):
    pass


class ConvTranspose2d(_TransposedConvolution, nn.ConvTranspose2d):
    pass


class ConvTranspose3d(_TransposedConvolution, nn.ConvTranspose3d):
    pass


class ConvTBC(nn.Module):
    """A convolution over (time, batch, channels); weight is (kernel_size, in_channels, out_channels)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, padding: int = 0, **made: Any):
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.padding = kernel_size, padding
        self.weight = nn.Parameter(torch.empty(kernel_size, in_channels, out_channels, **made))
        self.bias = nn.Parameter(torch.empty(out_channels, **made))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_normal_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functions.conv_tbc(input, self.weight, self.bias, self.padding)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, padding={self.padding}"


class LSTM(nn.LSTM):
    def __init__(self, *args: Any, **given: Any):
        super().__init__(*args, **given)
        if self.proj_size:
            raise invalid(f"aclnnLSTM has no projections; proj_size is {self.proj_size} but must be 0.", "proj_size")

    def forward(self, input: Any, hx: States | None = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._of_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.dim() == 3:
            return self._of_padded(input, hx, None)
        batch_axis = 0 if self.batch_first else 1
        states = None if hx is None else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        output, (hy, cy) = self._of_padded(input.unsqueeze(batch_axis), states, None)
        return output.squeeze(batch_axis), (hy.squeeze(1), cy.squeeze(1))

    def _params(self) -> list[torch.Tensor]:
        """As they are now: a parametrization may compute them anew for every call."""
        return [getattr(self, name) for name in self._flat_weights_names]

    def _of_packed(self, input: PackedSequence, hx: States | None) -> tuple[PackedSequence, States]:
        data, batch_sizes, order, order_back = input
        states = None if hx is None else self.permute_hidden(hx, order)
        padded, lengths = pad_packed_sequence(PackedSequence(data, batch_sizes), batch_first=self.batch_first)
        output, last = self._of_padded(padded, states, batch_sizes)
        packed = pack_padded_sequence(output, lengths, batch_first=self.batch_first)
        return PackedSequence(packed.data, batch_sizes, order, order_back), self.permute_hidden(last, order_back)

    def _of_padded(
        self, input: torch.Tensor, hx: States | None, batch_sizes: torch.Tensor | None
    ) -> tuple[torch.Tensor, States]:
        if self.training and self.dropout > 0 and self.num_layers > 1:
            return self._with_dropout(input, hx, batch_sizes)
        output, hy, cy = functions.lstm(
            input,
            self._params(),
            hx,
            batch_sizes,
            has_bias=self.bias,
            num_layers=self.num_layers,
            bidirectional=self.bidirectional,
            batch_first=self.batch_first,
        )
        return output, (hy, cy)

    def _with_dropout(
        self, input: torch.Tensor, hx: States | None, batch_sizes: torch.Tensor | None
    ) -> tuple[torch.Tensor, States]:
        """Layer by layer, time-major: the same random numbers in the same order as PyTorch draws."""
        output = input.transpose(0, 1) if self.batch_first else input
        directions = 2 if self.bidirectional else 1
        params, last = self._params(), []
        each = len(params) // self.num_layers
        for layer in range(self.num_layers):
            if layer:
                output = self._dropped(output, batch_sizes)
            mine = slice(layer * directions, (layer + 1) * directions)
            output, *states = functions.lstm(
                output,
                params[layer * each : (layer + 1) * each],
                None if hx is None else (hx[0][mine], hx[1][mine]),
                batch_sizes,
                has_bias=self.bias,
                bidirectional=self.bidirectional,
            )
            last.append(states)
        hy, cy = (torch.cat(states) for states in zip(*last, strict=True))
        return output.transpose(0, 1) if self.batch_first else output, (hy, cy)

    def _dropped(self, output: torch.Tensor, batch_sizes: torch.Tensor | None) -> torch.Tensor:
        if batch_sizes is None:
            return functional.dropout(output, self.dropout, self.training)
        takes_part = torch.arange(output.shape[1]) < batch_sizes[:, None]
        kept = functional.dropout(output[takes_part], self.dropout, self.training)
        return torch.zeros_like(output).index_put((takes_part,), kept)


class LSTMCell(nn.LSTMCell):
    def forward(self, input: torch.Tensor, hx: States | None = None) -> States:
        if input.dim() not in (1, 2):
            raise ValueError(f"LSTMCell: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for index, state in enumerate(hx or ()):
            if state.dim() not in (1, 2):
                raise ValueError(f"LSTMCell: Expected hx[{index}] to be 1D or 2D, got {state.dim()}D instead")
        if input.dim() == 1:
            states = None if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
            hy, cy = self.forward(input.unsqueeze(0), states)
            return hy.squeeze(0), cy.squeeze(0)
        nothing = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        h, c = (nothing, nothing) if hx is None else hx
        gates, hidden_gates = functional.linear(input, self.weight_ih), functional.linear(h, self.weight_hh)
        biases = (self.bias_ih, self.bias_hh) if self.bias else (None, None)
        return functions.thnn_fused_lstm_cell(gates, hidden_gates, c, *biases)
