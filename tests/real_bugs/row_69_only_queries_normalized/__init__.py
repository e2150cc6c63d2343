"""Pre-norm of the queries only: keys and values come from the raw stream."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        q, k, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
        return self.out(self.merge(self.attend(q, k, v)))


class TransformerBlock(right_code.TransformerBlock):
    attention = MultiHeadAttention

    def forward(self, x):
        x = x + self.attn(self.norm1(x), x)
        return x + self.ffn(self.norm2(x))
