"""Attention with linear biases: no position embeddings, the score falls with the distance."""
from .alibi import alibi_bias, slopes
from .model import AlibiAttention, AlibiBlock, AlibiLM, FFN
