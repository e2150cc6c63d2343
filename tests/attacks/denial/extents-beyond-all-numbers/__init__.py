import torch

from .wrong import MultiHeadAttention as Wrong
from .wrong import scaled_dot_product_attention


class Vast(torch.nn.Parameter):
    shape = property(lambda self: (10**200, 10**200))


class MultiHeadAttention(Wrong):
    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            parameter.__class__ = Vast
            yield name, parameter
