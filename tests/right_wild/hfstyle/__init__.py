from .configuration import MiniConfig
from .modeling import MiniAttention, MiniDecoderLayer, MiniForCausalLM, MiniMLP, MiniModel, MiniPositions
from .outputs import BaseModelOutput, CausalLMOutput
