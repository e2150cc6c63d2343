"""Time-major transformer: every activation is (T, B, C), as fairseq has it."""
from .attention import SelfAttention
from .layers import DecoderLayer, FFN, SinusoidalPositionalEmbedding
from .lm import LanguageModel
