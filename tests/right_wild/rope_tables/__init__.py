from .attention import Attention, RMSNorm
from .block import Layer, SwiGLU
from .model import CausalLM, rope_tables
from .rope import apply_rope, rotate_half
