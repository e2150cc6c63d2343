"""BERT in NumPy: weights in a dictionary, no autograd, no modes."""

from .bert import BertModel

__all__ = ["BertModel"]
