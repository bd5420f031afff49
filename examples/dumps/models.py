"""Three small models whose training steps hold every call that `aclnn compare` judges in a dump."""

from __future__ import annotations

import torch
from torch import nn


class ResidualBlock(nn.Module):
    """Convolutions, batch norms, ELU in place and not, a shortcut with a stride."""

    def __init__(self, channels: int = 8, inplace: bool = False):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.act = nn.ELU(inplace=inplace)
        self.second = nn.Conv2d(channels, channels, 3, padding="same", groups=2, bias=False)
        self.shortcut = nn.Conv2d(3, channels, 1, stride=2)
        self.last = nn.ELU(alpha=1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.norm(self.first(x)))
        return self.last(self.second(y) + self.shortcut(x)).square().mean()


class Speech(nn.Module):
    """A convolution over time, then a bidirectional LSTM of two layers."""

    def __init__(self, hidden: int = 6):
        super().__init__()
        self.front = nn.Conv1d(5, 7, 3, padding=2, dilation=2)
        self.act = nn.SELU()
        self.lstm = nn.LSTM(7, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.lstm(self.act(self.front(x)).transpose(1, 2))
        return self.head(y).square().mean()


class Decoder(nn.Module):
    """An LSTM cell that is stepped four times, then a transposed convolution."""

    def __init__(self, hidden: int = 6):
        super().__init__()
        self.cell = nn.LSTMCell(5, hidden)
        self.up = nn.ConvTranspose1d(hidden, 3, 4, stride=2, padding=1, output_padding=1)
        self.act = nn.CELU(0.7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, seen = None, []
        for step in x:
            state = self.cell(step, state)
            seen.append(state[0])
        return self.act(self.up(torch.stack(seen, -1))).square().mean()


def inputs(name: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    shapes = {"block": (2, 3, 12, 12), "speech": (3, 5, 9), "decoder": (4, 3, 5)}
    return torch.randn(shapes[name]).to(dtype).requires_grad_()


MODELS = {"block": ResidualBlock, "speech": Speech, "decoder": Decoder}
