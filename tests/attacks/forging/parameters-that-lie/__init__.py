import torch

from .wrong import MultiHeadAttention as Wrong


class MultiHeadAttention(Wrong):
    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        yield "q.weight", torch.nn.Parameter(torch.zeros(1).expand(10**5, 10**6))
        yield "k.weight", self.q.weight
        yield "v.weight", self.q.weight

    def parameters(self, recurse=True):
        return iter([])
