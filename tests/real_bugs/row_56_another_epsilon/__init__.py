"""Norms with another epsilon than the declared one."""

from functools import partial

from torch import nn

import right_code


class TransformerBlock(right_code.TransformerBlock):
    norm = partial(nn.LayerNorm, eps=1e-6)
