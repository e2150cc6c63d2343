"""Parallel residual branches, partial rotary positions, queries/keys/values fused head by head."""
from .modeling import NeoAttention, NeoConfig, NeoForCausalLM, NeoLayer, NeoMLP, RotaryEmbedding
