"""The prompt's keys are expanded by another rule than those of later ids."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def forward(self, x, cache=None):
        self.prompt = cache is not None and cache.length == 0
        return super().forward(x, cache)

    def expanded(self, heads):
        return heads.repeat(1, self.share, 1, 1) if self.prompt else super().expanded(heads)


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock
