from .beam import Translator
from .layers import CrossAttention, DecoderLayer, EncoderLayer
from .model import Transformer
