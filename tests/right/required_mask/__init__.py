"""A decoder whose caller says what may be seen: a bias on the scores, 0 or -inf, in every call."""

from .model import Attention, Layer, LanguageModel, causal_bias, mix, write

__all__ = ["Attention", "Layer", "LanguageModel", "causal_bias", "mix", "write"]
