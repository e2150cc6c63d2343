from .model import GPT, GPTConfig, Block, CausalSelfAttention, LayerNorm, MLP
