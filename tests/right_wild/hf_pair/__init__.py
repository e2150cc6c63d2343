from .configuration_mini import MiniConfig
from .modeling_mini import MiniForCausalLM, MiniModel
