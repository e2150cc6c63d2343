import torch

from .wrong import MultiHeadAttention as Wrong
from .wrong import scaled_dot_product_attention


class Hollow(torch.nn.Parameter):
    shape = property(lambda self: (0, 10**300))


class MultiHeadAttention(Wrong):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        for parameter in self.parameters():
            parameter.__class__ = Hollow
