"""Keys are permuted as if there were as many of their heads as of queries."""

import right_code


class TransformerBlock(right_code.ModernBlock):
    attention = right_code.PairsAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock


def convert(theirs):
    ours = right_code.from_llama(theirs)
    for name, array in ours.items():
        if name.endswith(("attn.q.weight", "attn.k.weight")):
            ours[name] = right_code.interleaved(array, heads=4)
    return ours
