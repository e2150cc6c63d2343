from .model import Attention, FeedForward, ModelArgs, RMSNorm, Transformer, TransformerBlock, apply_rotary_emb, precompute_freqs_cis, repeat_kv
