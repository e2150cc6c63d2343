"""Attention whose queries and keys come from one projection, values from another; gated feed-forward; RMS norms."""
from .layers import Attention, EncoderOrDecoderBlock, GatedFeedForward, RMSNorm, SinusoidalEmbedding
