"""A head that starts as a copy of the embeddings, and is trained on its own."""

import torch

import right_code


class TinyTransformerLM(right_code.TinyTransformerLM):
    head_bias = False

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.head.weight = torch.nn.Parameter(self.embedding.weight.detach().clone())
