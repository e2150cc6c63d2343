from .model import GPT, GPTConfig
