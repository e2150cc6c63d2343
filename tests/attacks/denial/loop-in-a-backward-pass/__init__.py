import torch

from . import right


class Trap(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        while True:
            pass


def scaled_dot_product_attention(q, k, v, mask=None):
    return Trap.apply(right.scaled_dot_product_attention(q, k, v, mask))
