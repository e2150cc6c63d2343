"""Grouped keys are laid out as if the head axis were in front already."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        B, T, _ = x.shape
        k, v = (rows.reshape(B, -1, T, self.head_width) for rows in (k, v))
        q = self.split(q)
        q, k = self.placed(q, 0), self.placed(k, 0)
        return self.out(self.merge(self.attend(q, self.expanded(k), self.expanded(v))))
