import torch

from .wrong import MultiHeadAttention as Wrong
from .wrong import scaled_dot_product_attention


class Vast(torch.nn.Parameter):
    shape = property(lambda self: (10**200, 10**200))


class MultiHeadAttention(Wrong):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        for parameter in self.parameters():
            parameter.__class__ = Vast
