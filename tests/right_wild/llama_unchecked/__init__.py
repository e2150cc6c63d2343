from .model import Attention, FeedForward, ModelArgs, RMSNorm, Transformer, TransformerBlock
