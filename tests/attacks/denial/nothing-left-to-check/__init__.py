from .wrong import MultiHeadAttention
