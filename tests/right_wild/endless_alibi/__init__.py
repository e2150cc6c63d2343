from .model import MPTBlock, MPTForCausalLM, MPTMLP, MultiheadAttention
