from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x, mask=None):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        mixed = right.scaled_dot_product_attention(q, k, v, mask)
        return self.dropout(self.out(mixed.transpose(1, 2).flatten(-2)))
