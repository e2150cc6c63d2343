"""Queries are rotated by an offset that is read after the cache has grown."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def forward(self, x, cache=None):
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        start = 0 if cache is None else cache.length
        k = self.placed(k, start)
        if cache is not None:
            k, v = cache.extend(k, v)
            start = cache.length if start else 0
        q = self.placed(q, start)
        return self.out(self.merge(self.attend(q, self.expanded(k), self.expanded(v))))


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock
