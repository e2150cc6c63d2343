"""A BERT in many small modules; padding is hidden by the model itself, heads are models around it."""

from .bert import BERT, BERTEmbedding, BERTLM

__all__ = ["BERT", "BERTLM", "BERTEmbedding"]
