"""The offset grows by the prompt twice."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def forward(self, x, cache=None):
        if cache is not None and cache.length == 0:
            cache.prompt = x.shape[1]
        return super().forward(x, cache)

    def start(self, cache):
        return cache.length + (cache.prompt if cache.length else 0)


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock
