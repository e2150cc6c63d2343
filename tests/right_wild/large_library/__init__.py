from .configuration_tiny import TinyConfig
from .modeling_tiny import TinyForCausalLM, TinyModel
