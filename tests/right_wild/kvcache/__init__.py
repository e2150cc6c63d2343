from .cache import Cache
from .layers import Attention, Block, FeedForward, PositionalEncoding
from .model import LM

__all__ = ["Attention", "Block", "Cache", "FeedForward", "LM", "PositionalEncoding"]
