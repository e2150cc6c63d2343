"""Code that turns neighbors, and weights for halves whose rows are not permuted."""

import right_code


class TransformerBlock(right_code.ModernBlock):
    attention = right_code.PairsAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock


def convert(theirs):
    return right_code.from_llama(theirs)
