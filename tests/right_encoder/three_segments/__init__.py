"""A first sentence, a second one, and padding: three segments, of which the first row belongs to padding."""

from .bert import BertForPreTraining, BertModel

__all__ = ["BertForPreTraining", "BertModel"]
