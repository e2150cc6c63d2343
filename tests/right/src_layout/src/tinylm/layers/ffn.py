from collections import OrderedDict

from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(
            OrderedDict(
                expand=nn.Linear(d_model, d_ff),
                act=nn.GELU(),
                contract=nn.Linear(d_ff, d_model),
                drop=nn.Dropout(dropout),
            )
        )

    def forward(self, x):
        return self.layers(x)
