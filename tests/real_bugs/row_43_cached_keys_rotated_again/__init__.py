"""Keys are rotated when they are cached, and again whenever they are read."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def forward(self, x, cache=None):
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        start = 0 if cache is None else cache.length
        q, k = self.placed(q, start), self.placed(k, start)
        if cache is not None:
            k, v = cache.extend(k, v)
            k = self.placed(k, 0) if start else k
        return self.out(self.merge(self.attend(q, self.expanded(k), self.expanded(v))))


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock
