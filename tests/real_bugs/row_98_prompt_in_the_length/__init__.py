"""Scores are divided by the length of prompt and new ids together."""

import torch

import right_code
from right_code import TinyTransformerLM

__all__ = ["TinyTransformerLM", "beam_search"]


def beam_search(model, ids, max_new_tokens, beam_width, length_penalty=0.0, eos_id=None):
    best = [
        right_code.beams_of(model, row, max_new_tokens, beam_width, length_penalty, eos_id, length=len) for row in ids
    ]
    return torch.stack([texts for texts, _ in best]), torch.stack([scores for _, scores in best])
