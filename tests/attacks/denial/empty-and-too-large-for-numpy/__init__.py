import torch

from .wrong import MultiHeadAttention as Wrong
from .wrong import scaled_dot_product_attention


class Hollow(torch.nn.Parameter):
    shape = property(lambda self: (0, 2**62, 4))


class MultiHeadAttention(Wrong):
    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            parameter.__class__ = Hollow
            yield name, parameter
