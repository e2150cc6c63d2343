"""BERT on nn.TransformerEncoder: True in a mask (B, S) hides; the contract's names otherwise."""

from .model import BertForPreTraining, BertModel

__all__ = ["BertForPreTraining", "BertModel"]
