"""Encoder layers with PyTorch's `key_padding_mask`: boolean (B, T), True for keys to ignore."""
from ._attention import MaskShapeError, MultiheadSelfAttention
from ._layers import EncoderLayer, PositionwiseFF, LearnedPositions

__all__ = ["EncoderLayer", "LearnedPositions", "MaskShapeError", "MultiheadSelfAttention", "PositionwiseFF"]
