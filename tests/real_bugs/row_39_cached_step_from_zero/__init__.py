"""A cached step is rotated by the angles of position 0."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def start(self, cache):
        return 0


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock
