from .configuration_gpt2 import GPT2Config
from .modeling_gpt2 import (CausalLMOutput, Conv1D, GPT2Attention, GPT2Block, GPT2LMHeadModel, GPT2MLP, GPT2Model)

__all__ = ["CausalLMOutput", "Conv1D", "GPT2Attention", "GPT2Block", "GPT2Config", "GPT2LMHeadModel", "GPT2MLP",
           "GPT2Model"]
