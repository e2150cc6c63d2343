"""Masked language alone, as RoBERTa: no segments, no next sentence, no pooler; torch's fused attention."""

from .lm import BertForMaskedLM

__all__ = ["BertForMaskedLM"]
