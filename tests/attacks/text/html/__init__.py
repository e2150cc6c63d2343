import torch

from . import wrong

EVIL = """</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>"'`&lt;&#x202e;{{7*7}}${7*7}<!--"""


class MultiHeadAttention(wrong.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self.register_parameter("<svg/onload=alert(3)>", torch.nn.Parameter(torch.zeros(3)))


def scaled_dot_product_attention(q, k, v, mask=None):
    print(EVIL)
    raise type("<script>alert(4)</script>", (Exception,), {})(EVIL)
